//! Shared validation of fields, and the fields that an update keeps.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{label_value, qualified_name};
use model::object::{copy, map_mut};
use serde_json::{Map, Value};

/// One error per problem of a value.
pub fn invalid_for(path: &Path<'_>, value: &str, problems: Vec<String>) -> Vec<FieldError> {
    problems.into_iter().map(|problem| FieldError::invalid(path, value, problem)).collect()
}

/// The error for a value that is not in a list.
pub fn unsupported(path: &Path<'_>, value: &str, supported: &[&str]) -> Option<FieldError> {
    (!supported.contains(&value)).then(|| FieldError::not_supported(path, value, supported))
}

/// Validates labels, or selectors by labels.
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

/// The error for an immutable field that changed.
pub fn immutable(new: &Object, old: &Object, field: &str) -> Option<FieldError> {
    let changed = new.get(field) != old.get(field);
    changed.then(|| {
        let value = new.get(field).cloned().unwrap_or_default();
        FieldError::invalid(field, value, "field is immutable")
    })
}

/// Restores everything but metadata and status from the old object.
pub fn keep_all_but_status(new: &mut Object, old: &Object) {
    let is_own = |field: &String| ["metadata", "status"].contains(&field.as_str());
    new.retain(|field, _| is_own(field) || old.contains_key(field));
    for field in old.keys().filter(|field| !is_own(field)) {
        copy(new, old, field);
    }
}

/// Restores the metadata that a status update does not change.
pub fn keep_metadata(new: &mut Object, old: &Object) {
    let nothing = Map::new();
    let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
    let new = map_mut(new, "metadata");
    for field in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        copy(new, old, field);
    }
}
