//! Namespace. It has a label with its name and a finalizer in its spec.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{NameRule, qualified_name};
use model::object::{copy, items, map_mut, set_default, text, value};
use serde_json::{Value, json};

use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::{KindRules, SelectableField, Subresource};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const FINALIZER: &str = "kubernetes";

/// Finalizers without a domain.
const STANDARD_FINALIZERS: [&str; 3] = [FINALIZER, "orphan", "foregroundDeletion"];

pub(super) const RULES: KindRules = KindRules {
    kind: "Namespace",
    name: NameRule::Dns1123Label,
    default: |object| {
        set_default(map_mut(object, "status"), "phase", "Active");
        label_with_name(object);
    },
    prepare_create,
    prepare_update: |new, old| {
        copy(new, old, "spec");
        copy(new, old, "status");
    },
    canonicalize: label_with_name,
    validate_create: |object| bad_finalizers(object, |_| "spec.finalizers".to_owned()),
    validate_update: |new, _| bad_finalizers(new, |_| "spec.finalizers".to_owned()),
    prepare_delete: |object| {
        map_mut(object, "status").insert("phase".to_owned(), "Terminating".into());
        map_mut(object, "metadata").remove("deletionGracePeriodSeconds");
    },
    holds_deletion: |object| !items(object, &["spec", "finalizers"]).is_empty(),
    subresources: &[
        Subresource {
            name: "status",
            prepare_update: |new, old| copy(new, old, "spec"),
            validate_update: |new, _| bad_phase(new).into_iter().collect(),
        },
        Subresource {
            name: "finalize",
            prepare_update: |new, old| copy(new, old, "status"),
            validate_update: |new, _| {
                bad_finalizers(new, |index| Path::SPEC.item("finalizers", index).into())
            },
        },
    ],
    selectable: &[SelectableField {
        path: "status.phase",
        value: |object| text(object, &["status", "phase"]).into(),
    }],
    columns: &[NAME, Column::new("Status", "string", "The phase of the namespace."), AGE],
    cells: |object, now| vec![name(object), text(object, &["status", "phase"]).into(), age(object, now)],
    ..KindRules::PLAIN
};

/// A name may be generated after defaulting, so this runs again at the end.
fn label_with_name(object: &mut Object) {
    let name = text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        map_mut(map_mut(object, "metadata"), "labels").insert(NAME_LABEL.to_owned(), name.into());
    }
}

fn prepare_create(object: &mut Object) {
    object.insert("status".to_owned(), json!({"phase": "Active"}));
    let finalizers = map_mut(object, "spec").entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    {
        finalizers.push(FINALIZER.into());
    }
}

fn bad_finalizers(object: &Object, path: fn(usize) -> String) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, finalizer) in items(object, &["spec", "finalizers"]).iter().enumerate() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        let mut problems = qualified_name(finalizer);
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
            problems.push("name is neither a standard finalizer name nor is it fully qualified".to_owned());
        }
        errors
            .extend(problems.into_iter().map(|problem| FieldError::invalid(path(index), finalizer, problem)));
    }
    errors
}

fn bad_phase(object: &Object) -> Option<FieldError> {
    let deleted = value(object, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
    let (wanted, state) = if deleted { ("Terminating", "not empty") } else { ("Active", "empty") };
    let phase = text(object, &["status", "phase"]);
    (phase != wanted).then(|| {
        let problem = format!("may only be '{wanted}' if `deletionTimestamp` is {state}");
        FieldError::invalid("status.Phase", phase, problem)
    })
}
