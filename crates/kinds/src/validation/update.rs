//! Validation of updates of `metadata`.

use std::collections::BTreeSet;

use model::error::{FieldError, Path, quote};
use serde_json::{Map, Value};

use super::Metadata;

/// Validates the change from `old` to `new`, in addition to the validation of `new`.
///
/// kube-apiserver silently restores most immutable fields before this; that is up to the caller. The resource version
/// of an update is checked elsewhere.
pub fn validate_object_meta_update(new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<FieldError> {
    let (new, old) = (Metadata::of(new), Metadata::of(old));
    let mut errors: Vec<FieldError> = new_finalizer(new, old).into_iter().collect();
    let generation = new.number("generation").unwrap_or(0);
    if generation < old.number("generation").unwrap_or(0) {
        errors.push(FieldError::invalid("metadata.generation", generation, "must not be decremented"));
    }
    for key in ["name", "namespace", "uid"] {
        let (new, old) = (new.text(key), old.text(key));
        errors.extend((new != old).then(|| immutable(key, new.into())));
    }
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (new.get(key), old.get(key));
        errors.extend((new != old).then(|| immutable(key, new.clone())));
    }
    errors
}

fn immutable(key: &str, value: Value) -> FieldError {
    FieldError::invalid(Path::METADATA.field(key), value, "field is immutable")
}

/// An object being deleted takes no new finalizers: they would block its deletion forever.
fn new_finalizer(new: Metadata<'_>, old: Metadata<'_>) -> Option<FieldError> {
    if old.get("deletionTimestamp").is_null() {
        return None;
    }
    let known = old.texts("finalizers");
    let added: BTreeSet<&str> =
        new.texts("finalizers").into_iter().filter(|name| !known.contains(name)).collect();
    if added.is_empty() {
        return None;
    }
    let list: Vec<String> = added.into_iter().map(quote).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        list.join(", ")
    );
    Some(FieldError::forbidden("metadata.finalizers", detail))
}
