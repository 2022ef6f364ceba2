//! Checks of fields that kinds share, and the fields that an update keeps.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{label_value, qualified_name};
use model::object::{copy, map_mut};
use serde_json::{Map, Value};

/// The error for each problem of a text.
pub fn invalid_for(path: &Path<'_>, value: &str, problems: Vec<String>) -> Vec<FieldError> {
    problems.into_iter().map(|problem| FieldError::invalid(path, value, problem)).collect()
}

/// The error for a text that is none of a few.
pub fn unsupported(path: &Path<'_>, value: &str, supported: &[&str]) -> Option<FieldError> {
    (!supported.contains(&value)).then(|| FieldError::not_supported(path, value, supported))
}

/// What is wrong with labels, or with what selects by them.
pub fn bad_labels<'a>(
    path: &Path<'_>,
    labels: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Vec<FieldError> {
    let check = |(key, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        let mut errors = invalid_for(path, key, qualified_name(key));
        errors.extend(invalid_for(path, value, label_value(value)));
        errors
    };
    labels.flat_map(check).collect()
}

/// The error for a field that may not change, if it has changed.
pub fn immutable(new: &Object, old: &Object, field: &str) -> Option<FieldError> {
    let changed = new.get(field) != old.get(field);
    changed.then(|| {
        let value = new.get(field).cloned().unwrap_or_default();
        FieldError::invalid(field, value, "field is immutable")
    })
}

/// Takes all from the old object but metadata and status.
pub fn keep_all_but_status(new: &mut Object, old: &Object) {
    let is_own = |field: &String| ["metadata", "status"].contains(&field.as_str());
    new.retain(|field, _| is_own(field) || old.contains_key(field));
    for field in old.keys().filter(|field| !is_own(field)) {
        copy(new, old, field);
    }
}

/// Takes from the old object the metadata that a write of a status never changes.
pub fn keep_metadata(new: &mut Object, old: &Object) {
    let nothing = Map::new();
    let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
    let new = map_mut(new, "metadata");
    for field in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        copy(new, old, field);
    }
}
