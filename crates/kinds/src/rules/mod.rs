//! The rules of built-in kinds: defaults, preparation, validation, selectable fields, printer columns.
//!
//! Objects have been decoded by [`crate::schema::check`]. A kind that is not listed has no rules. Metadata is validated
//! elsewhere, in the same way for all kinds.

mod admission;
mod age;
mod apiextensions;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod claims;
mod columns;
mod common;
mod conditions;
mod coordination;
mod core;
mod discovery;
mod flowcontrol;
mod go;
mod label_selector;
mod networking;
mod node;
mod policy;
mod quantities;
mod ranges;
mod rbac;
mod resource;
mod scheduling;
mod selection;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use model::error::{FieldError, quote};
use model::names::NameRule;
use model::{Object, object};
use serde_json::{Map, Value};

pub use age::human_duration;
pub(crate) use age::since;
pub use apiextensions::approval_condition;
pub use autoscaling::{scale_of, set_scale, validate_scale};
pub use claims::{Claim, Pool, Refusal};
pub use columns::Column;
pub use common::keep_all_but_status;
pub use core::{bind, validate_binding};
pub use flowcontrol::{flow_schemas, priority_levels};
pub use policy::{evict, note_eviction};
pub use ranges::Ranges;
pub use resource::{admin_access, bad_admin_access};

/// The rules of a kind.
#[derive(Debug)]
pub struct KindRules {
    /// The group, empty for the core group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The validation of its names.
    pub name: NameRule,
    /// Sets defaults. Runs on every decoded object, including stored ones.
    pub default: fn(&mut Object),
    /// Sets values that count as written by the client when field managers are computed.
    pub seen: Option<fn(&mut Object)>,
    /// Sets fields that clients may not set on create, before validation; the name may not be generated yet.
    pub prepare_create: fn(&mut Object),
    /// Sets fields that clients may not set on update: the new object and the old one.
    pub prepare_update: fn(&mut Object, &Object),
    /// Sets fields that depend on the user and the time, after preparation: the new object, and the old one of an
    /// update.
    pub stamp: fn(&mut Object, Option<&Object>, &Writer),
    /// Normalizes a validated object.
    pub canonicalize: fn(&mut Object),
    /// Validates a new object.
    pub validate_create: fn(&Object) -> Vec<FieldError>,
    /// Validates an update: the new object and the old one.
    pub validate_update: fn(&Object, &Object) -> Vec<FieldError>,
    /// The deprecation warning of the kind.
    pub deprecated: Option<&'static str>,
    /// The warnings about a valid object: the new object, and the old one of an update.
    pub warnings: fn(&Object, Option<&Object>) -> Vec<String>,
    /// The grace period of a deletion in seconds, for the requested one.
    pub grace: Option<fn(&Object, Option<i64>) -> i64>,
    /// Sets fields when a graceful deletion starts.
    pub prepare_delete: fn(&mut Object),
    /// Whether anything beside `metadata.finalizers` blocks the deletion.
    pub holds_deletion: fn(&Object) -> bool,
    /// The reason why an object with this name cannot be deleted.
    pub forbids_deletion: fn(&str) -> Option<&'static str>,
    /// The default propagation policy of a deletion.
    pub dependents: Dependents,
    /// Allocates values before preparation: the new object, and the old one of an update.
    pub allocate: Option<Allocate>,
    /// The exclusive values of a valid object.
    pub claims: fn(&Object) -> BTreeSet<Claim>,
    /// The resources, by group and plural, whose object of the same name is deleted with this one.
    pub ends_with: &'static [(&'static str, &'static str)],
    /// Its writable subresources.
    pub subresources: &'static [Subresource],
    /// Whether `metadata.generation` counts changes outside metadata and status.
    pub counts_generations: bool,
    /// Whether the generation counts changes of annotations, too.
    pub counts_annotations: bool,
    /// Whether an update creates a missing object.
    pub create_on_update: bool,
    /// Whether an update may omit the resourceVersion.
    pub unconditional_update: bool,
    /// Its selectable fields, beside name and namespace.
    pub selectable: &'static [SelectableField],
    columns: &'static [Column],
    cells: fn(&Object, jiff::Timestamp) -> Vec<Value>,
}

/// Allocates exclusive values for an object.
pub type Allocate = fn(&mut Object, Option<&Object>, &mut Pool<'_>) -> Result<(), Refusal>;

/// The user and the time of a write.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The user name.
    pub name: &'a str,
    /// The unique ID of the user; may be empty.
    pub uid: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
    /// The extra fields of the user.
    pub extra: &'a BTreeMap<String, Vec<String>>,
    /// The time in the format of objects.
    pub now: &'a str,
}

/// A writable subresource such as `status`.
#[derive(Debug)]
pub struct Subresource {
    /// Its name in the path.
    pub name: &'static str,
    /// Restores the fields that the subresource does not write from the old object.
    pub prepare_update: fn(&mut Object, &Object),
    /// Validates the update, instead of the validation of the whole object.
    pub validate_update: fn(&Object, &Object) -> Vec<FieldError>,
}

/// A selectable field.
#[derive(Debug)]
pub struct SelectableField {
    /// The name in selectors.
    pub path: &'static str,
    /// Its value; empty if it is missing.
    pub value: for<'a> fn(&'a Object) -> Cow<'a, str>,
}

/// The default propagation policy of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// Background: dependents are garbage collected.
    Collected,
    /// Orphan, with a warning for the client.
    Orphaned(&'static str),
    /// The kind has no dependents; the propagation policy is ignored.
    None,
}

/// The kinds with rules, by group.
const GROUPS: &[&[KindRules]] = &[
    admission::RULES,
    apiextensions::RULES,
    apiregistration::RULES,
    apps::RULES,
    autoscaling::RULES,
    batch::RULES,
    certificates::RULES,
    coordination::RULES,
    core::RULES,
    discovery::RULES,
    flowcontrol::RULES,
    networking::RULES,
    node::RULES,
    policy::RULES,
    rbac::RULES,
    resource::RULES,
    scheduling::RULES,
    storage::RULES,
];

fn all() -> impl Iterator<Item = &'static KindRules> {
    GROUPS.iter().copied().flatten()
}

/// The rules of a kind.
pub fn rules(group: &str, kind: &str) -> Option<&'static KindRules> {
    all().find(|rules| rules.group == group && rules.kind == kind)
}

/// The rules of a kind that has none of its own.
pub fn plain_rules(has_status: bool) -> &'static KindRules {
    const PLAIN: &KindRules = &KindRules::PLAIN;
    const WITH_STATUS: &KindRules = &KindRules::WITH_STATUS;
    if has_status { WITH_STATUS } else { PLAIN }
}

/// Kinds with selectable fields of their own, but without `metadata.namespace`.
const NO_NAMESPACE_FIELD: [&str; 4] = ["CertificateSigningRequest", "Namespace", "Node", "ResourceSlice"];

/// Checks that a field selector may name this field of a kind; the error is the message.
pub fn check_selectable(group: &str, kind: &str, path: &str) -> Result<(), String> {
    let own = rules(group, kind).map(|rules| rules.selectable).unwrap_or_default();
    if path == "metadata.name" || own.iter().any(|field| field.path == path) {
        return Ok(());
    }
    if own.is_empty() {
        return match path {
            "metadata.namespace" => Ok(()),
            _ => Err(format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                quote(path)
            )),
        };
    }
    // Kinds with selectable fields list all of them; cluster-scoped ones do not list the namespace.
    if path == "metadata.namespace" && !NO_NAMESPACE_FIELD.contains(&kind) {
        return Ok(());
    }
    if kind == "Job" {
        return Err(format!("field label {} not supported for Job", quote(path)));
    }
    if kind == "ResourceSlice" {
        return Err(format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {path}"));
    }
    Err(format!("field label not supported: {path}"))
}

impl KindRules {
    /// The rules of a kind without special cases; each kind overrides some.
    const PLAIN: Self = Self {
        group: "",
        kind: "",
        name: NameRule::Dns1123Subdomain,
        default: |_| {},
        seen: None,
        prepare_create: |_| {},
        prepare_update: |_, _| {},
        stamp: |_, _, _| {},
        canonicalize: |_| {},
        validate_create: |_| Vec::new(),
        validate_update: |_, _| Vec::new(),
        deprecated: None,
        warnings: |_, _| Vec::new(),
        grace: None,
        prepare_delete: |_| {},
        holds_deletion: |_| false,
        forbids_deletion: |_| None,
        dependents: Dependents::Collected,
        allocate: None,
        claims: |_| BTreeSet::new(),
        ends_with: &[],
        subresources: &[],
        counts_generations: false,
        counts_annotations: false,
        create_on_update: false,
        unconditional_update: true,
        selectable: &[],
        columns: columns::PLAIN,
        cells: columns::plain_cells,
    };

    /// The rules of a kind with a status subresource and a generation.
    const WITH_STATUS: Self = Self {
        prepare_create: |object| {
            object.insert("status".to_owned(), Value::Object(Map::new()));
        },
        prepare_update: |new, old| object::copy(new, old, "status"),
        subresources: &[Subresource {
            name: "status",
            prepare_update: common::keep_all_but_status,
            validate_update: |_, _| Vec::new(),
        }],
        counts_generations: true,
        ..Self::PLAIN
    };

    /// Its printer columns.
    pub fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// The cells of an object, one per column.
    pub fn cells(&self, object: &Object, now: jiff::Timestamp) -> Vec<Value> {
        (self.cells)(object, now)
    }

    /// The subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether it has a status subresource.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}
