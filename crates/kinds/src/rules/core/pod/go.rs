//! Formats values as Kubernetes does in errors: with the names and the order of the fields of its Go types.

use std::fmt::Write;

use model::error::{FieldError, FieldErrorKind, Path};
use serde_json::Value;

/// A Go type, as it is encoded in JSON.
pub enum Go {
    /// A string that is never absent.
    Text,
    /// Any value; `null` if it is absent.
    Optional,
    /// A list of one type.
    List(&'static Go),
    /// Its fields: the Go name, the API name, and the type.
    Struct(&'static [(&'static str, &'static str, Go)]),
}

const PROFILE: &[(&str, &str, Go)] =
    &[("Type", "type", Go::Text), ("LocalhostProfile", "localhostProfile", Go::Optional)];

/// A seccomp profile.
pub const SECCOMP_PROFILE: Go = Go::Struct(PROFILE);

/// The security context of a container.
pub const SECURITY_CONTEXT: Go = Go::Struct(&[
    (
        "Capabilities",
        "capabilities",
        Go::Struct(&[("Add", "add", Go::Optional), ("Drop", "drop", Go::Optional)]),
    ),
    ("Privileged", "privileged", Go::Optional),
    (
        "SELinuxOptions",
        "seLinuxOptions",
        Go::Struct(&[
            ("User", "user", Go::Text),
            ("Role", "role", Go::Text),
            ("Type", "type", Go::Text),
            ("Level", "level", Go::Text),
        ]),
    ),
    (
        "WindowsOptions",
        "windowsOptions",
        Go::Struct(&[
            ("GMSACredentialSpecName", "gmsaCredentialSpecName", Go::Optional),
            ("GMSACredentialSpec", "gmsaCredentialSpec", Go::Optional),
            ("RunAsUserName", "runAsUserName", Go::Optional),
            ("HostProcess", "hostProcess", Go::Optional),
        ]),
    ),
    ("RunAsUser", "runAsUser", Go::Optional),
    ("RunAsGroup", "runAsGroup", Go::Optional),
    ("RunAsNonRoot", "runAsNonRoot", Go::Optional),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Go::Optional),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Go::Optional),
    ("ProcMount", "procMount", Go::Optional),
    ("SeccompProfile", "seccompProfile", Go::Struct(PROFILE)),
    ("AppArmorProfile", "appArmorProfile", Go::Struct(PROFILE)),
]);

const REQUIREMENTS: Go = Go::List(&Go::Struct(&[
    ("Key", "key", Go::Text),
    ("Operator", "operator", Go::Text),
    ("Values", "values", Go::Optional),
]));

/// A term of a node selector.
pub const NODE_TERM: Go = Go::Struct(&[
    ("MatchExpressions", "matchExpressions", REQUIREMENTS),
    ("MatchFields", "matchFields", REQUIREMENTS),
]);

/// Terms of a node selector.
pub const NODE_TERMS: Go = Go::List(&NODE_TERM);

/// IP addresses of a Pod.
pub const ADDRESSES: Go = Go::List(&Go::Struct(&[("IP", "ip", Go::Text)]));

/// A resource claim of a Pod.
pub const CLAIM: Go = Go::Struct(&[
    ("Name", "name", Go::Text),
    ("ResourceClaimName", "resourceClaimName", Go::Optional),
    ("ResourceClaimTemplateName", "resourceClaimTemplateName", Go::Optional),
]);

/// The error for a value in Go's format.
pub fn invalid(path: &Path<'_>, value: Option<&Value>, of: &Go, rule: &str) -> FieldError {
    let mut shown = String::new();
    write(&mut shown, value, of);
    FieldError {
        path: path.into(),
        kind: FieldErrorKind::Invalid,
        value: None,
        detail: format!("{shown}: {rule}"),
    }
}

fn write(out: &mut String, value: Option<&Value>, of: &Go) {
    match (of, value) {
        (Go::Text, None) => out.push_str("\"\""),
        (_, None | Some(Value::Null)) => out.push_str("null"),
        (Go::List(item), Some(Value::Array(items))) => {
            list(out, '[', ']', items.iter(), |out, value| write(out, Some(value), item));
        }
        (Go::Struct(fields), Some(Value::Object(object))) => {
            list(out, '{', '}', fields.iter(), |out, (name, field, of)| {
                write!(out, "\"{name}\":").expect("writing to a String cannot fail");
                write(out, object.get(*field), of);
            });
        }
        (_, Some(value)) => out.push_str(&value.to_string()),
    }
}

fn list<T>(
    out: &mut String,
    open: char,
    close: char,
    items: impl Iterator<Item = T>,
    each: impl Fn(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(close);
}
