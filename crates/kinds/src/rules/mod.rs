//! What Kubernetes writes in code about a kind: defaults, preparation, validation, selectable fields, columns.
//!
//! Objects come here as [`crate::schema::check`] leaves them. A kind that is not listed has no rules of its own.
//! Metadata is checked elsewhere, by the same rules for all kinds.

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

/// Everything that is special about a kind.
#[derive(Debug)]
pub struct KindRules {
    /// The group, empty for the core group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// What its names have to be.
    pub name: NameRule,
    /// Fills in what a client left out. Runs on everything that is decoded, also on what was stored.
    pub default: fn(&mut Object),
    /// Fills in what counts as set by whoever writes, when it is decided who owns which field.
    pub seen: Option<fn(&mut Object)>,
    /// Sets what no client may set, before a new object is validated; its name may not be known yet.
    pub prepare_create: fn(&mut Object),
    /// The same for a new version of an object: the new one, and the old one.
    pub prepare_update: fn(&mut Object, &Object),
    /// Sets what depends on who writes and when, after preparation: the new version, and the old one unless it is created.
    pub stamp: fn(&mut Object, Option<&Object>, &Writer),
    /// Brings an object into its final form, after validation, with its name known.
    pub canonicalize: fn(&mut Object),
    /// What is wrong with a new object.
    pub validate_create: fn(&Object) -> Vec<FieldError>,
    /// What is wrong with a new version of an object: the new one, and the old one.
    pub validate_update: fn(&Object, &Object) -> Vec<FieldError>,
    /// What everybody is told who still uses the kind.
    pub deprecated: Option<&'static str>,
    /// What a client should be told though it is valid: the new version, and the old one unless it is created.
    pub warnings: fn(&Object, Option<&Object>) -> Vec<String>,
    /// For how many seconds an object goes on when its deletion begins, given what the client asked for.
    pub grace: Option<fn(&Object, Option<i64>) -> i64>,
    /// Sets what a deletion changes that does not end at once.
    pub prepare_delete: fn(&mut Object),
    /// Whether something beside `metadata.finalizers` holds a deletion back.
    pub holds_deletion: fn(&Object) -> bool,
    /// Why an object with this name may never be deleted.
    pub forbids_deletion: fn(&str) -> Option<&'static str>,
    /// What becomes of its dependents where a deletion does not say it.
    pub dependents: Dependents,
    /// Fills in what the server hands out, before anything else is prepared: the new version, and the old one unless it
    /// is created.
    pub allocate: Option<Allocate>,
    /// What a valid object has for itself alone.
    pub claims: fn(&Object) -> BTreeSet<Claim>,
    /// The resources, by group and plural, of which the object with the same name ends with this one.
    pub ends_with: &'static [(&'static str, &'static str)],
    /// The ways to write only a part of it.
    pub subresources: &'static [Subresource],
    /// Whether `metadata.generation` counts the changes of anything but metadata and status.
    pub counts_generations: bool,
    /// Whether it counts the changes of annotations too.
    pub counts_annotations: bool,
    /// Whether an update of an object that is not there creates it.
    pub create_on_update: bool,
    /// Whether an update may leave out the resourceVersion.
    pub unconditional_update: bool,
    /// Its fields for field selectors, beside the name and namespace that every kind has.
    pub selectable: &'static [SelectableField],
    columns: &'static [Column],
    cells: fn(&Object, jiff::Timestamp) -> Vec<Value>,
}

/// Fills in what the server hands out, or says why it cannot.
pub type Allocate = fn(&mut Object, Option<&Object>, &mut Pool<'_>) -> Result<(), Refusal>;

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The user name.
    pub name: &'a str,
    /// What tells users of one name apart; may be empty.
    pub uid: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
    /// What else is known of the user.
    pub extra: &'a BTreeMap<String, Vec<String>>,
    /// The time, as objects have it.
    pub now: &'a str,
}

/// A part of an object that is written by itself, such as `status`.
#[derive(Debug)]
pub struct Subresource {
    /// Its name in the path.
    pub name: &'static str,
    /// Takes from the old object what this part does not write.
    pub prepare_update: fn(&mut Object, &Object),
    /// What is wrong with the new version; instead of the rules of the whole object.
    pub validate_update: fn(&Object, &Object) -> Vec<FieldError>,
}

/// A field that field selectors can name.
#[derive(Debug)]
pub struct SelectableField {
    /// As selectors name it.
    pub path: &'static str,
    /// Its value; empty if the object has none.
    pub value: for<'a> fn(&'a Object) -> Cow<'a, str>,
}

/// What becomes of the objects that an object owns when it is deleted and nothing is said of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// They go behind it.
    Collected,
    /// They stay, and the client is told this.
    Orphaned(&'static str),
    /// It never has any, whatever a deletion says of them.
    None,
}

/// The kinds that have rules, by group.
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

/// The rules of a kind, if it has any.
pub fn rules(group: &str, kind: &str) -> Option<&'static KindRules> {
    all().find(|rules| rules.group == group && rules.kind == kind)
}

/// What a kind without rules of its own has.
pub fn plain_rules(has_status: bool) -> &'static KindRules {
    const PLAIN: &KindRules = &KindRules::PLAIN;
    const WITH_STATUS: &KindRules = &KindRules::WITH_STATUS;
    if has_status { WITH_STATUS } else { PLAIN }
}

/// Kinds with fields of their own whose selectors may not name the namespace.
const NO_NAMESPACE_FIELD: [&str; 4] = ["CertificateSigningRequest", "Namespace", "Node", "ResourceSlice"];

/// Whether a field selector may name this field of a kind; if not, the message that says so.
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
    // Kinds with fields of their own list all of them, and these do not list the namespace that they do not have.
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
    /// A kind about which nothing is special; each kind says where it differs.
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

    /// A kind with a status that only its controller writes, and a generation that counts the changes of its spec.
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

    /// The columns of its table.
    pub fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// The cells of an object, one for each column.
    pub fn cells(&self, object: &Object, now: jiff::Timestamp) -> Vec<Value> {
        (self.cells)(object, now)
    }

    /// The part of it with this name, if it has one.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether its status is written apart from the rest.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}
