//! apiVersion and kind of a body, and Kubernetes' errors about them.

use kinds::patch::cannot_unmarshal;
use kinds::schema;
use model::error::quote;
use serde_json::Value;

use crate::registry::Object;

/// A body as an object with textual apiVersion and kind. Null is an empty object.
///
/// # Errors
/// Kubernetes' message.
pub fn typed(value: Value) -> Result<Object, String> {
    const HEAD: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let object = match value {
        Value::Object(object) => object,
        Value::Null => Object::new(),
        other => {
            return Err(unreadable(&cannot_unmarshal(&other, &format!("value of type {HEAD}"))));
        }
    };
    for key in ["apiVersion", "kind"] {
        match object.get(key) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let expected = format!("struct field .{key} of type string");
                return Err(unreadable(&cannot_unmarshal(other, &expected)));
            }
        }
    }
    match object.get("apiVersion").and_then(Value::as_str) {
        Some(version) if version.matches('/').count() > 1 => {
            Err(format!("unexpected GroupVersion string: {version}"))
        }
        _ => Ok(object),
    }
}

/// Kubernetes' message for JSON without readable apiVersion and kind.
pub fn unreadable(problem: &str) -> String {
    format!("couldn't get version/kind; json parse error: {problem}")
}

/// Kubernetes' message for an unknown kind.
pub fn not_registered(version: &str, kind: &str) -> String {
    format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quote(kind),
        quote(version)
    )
}

/// Whether a kind is built in, or a list of a built-in kind.
pub fn is_registered(api_version: &str, kind: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let known = |kind: &str| schema::builtin().by_kind(group, version, kind).is_some();
    known(kind) || kind.strip_suffix("List").is_some_and(known)
}

/// The Go package of a group's internal types, for messages.
pub fn internal_package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("" | "events") => "core",
        Some(package) => package,
    }
}
