//! Reads and writes single values in the tree of an object.

use serde_json::{Map, Value};

use super::Object;
use crate::error::{FieldError, Path};
use crate::names::{label_value, qualified_name};

/// The value at a path.
pub fn value<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (last, parents) = path.split_last()?;
    let mut at = object;
    for parent in parents {
        at = at.get(*parent)?.as_object()?;
    }
    at.get(*last)
}

/// The text at a path; empty if there is none, which Kubernetes does not distinguish.
pub fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    value(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a path; zero if there is none.
pub fn number(object: &Object, path: &[&str]) -> i64 {
    value(object, path).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether there is a `true` at a path.
pub fn is_true(object: &Object, path: &[&str]) -> bool {
    value(object, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The entries of the map at a path; none if there is no map.
pub fn entries<'a>(object: &'a Object, path: &[&str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value(object, path).and_then(Value::as_object).into_iter().flatten()
}

/// The items of the list at a path; none if there is no list.
pub fn items<'a>(object: &'a Object, path: &[&str]) -> &'a [Value] {
    value(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The items of the list at a path that are maps, with their positions.
pub fn maps<'a>(object: &'a Object, path: &[&str]) -> impl Iterator<Item = (usize, &'a Object)> {
    items(object, path).iter().enumerate().filter_map(|(index, item)| Some((index, item.as_object()?)))
}

/// The texts of the list at a path.
pub fn texts<'a>(object: &'a Object, path: &[&str]) -> Vec<&'a str> {
    items(object, path).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

/// The maps of the list in a field, to be changed.
pub fn maps_mut<'a>(object: &'a mut Object, field: &str) -> impl Iterator<Item = &'a mut Object> {
    let items = object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}

/// The map in a field, which is made if there is none.
pub fn map_mut<'a>(object: &'a mut Object, field: &str) -> &'a mut Object {
    if !object.get(field).is_some_and(Value::is_object) {
        object.insert(field.to_owned(), Value::Object(Map::new()));
    }
    object.get_mut(field).and_then(Value::as_object_mut).expect("it is an object now")
}

/// Gives a field the value that it has in another object, or none. Mostly it has it already: a comparison costs far
/// less than a copy.
pub fn copy(object: &mut Object, from: &Object, field: &str) {
    if object.get(field) == from.get(field) {
        return;
    }
    match from.get(field) {
        Some(value) => object.insert(field.to_owned(), value.clone()),
        None => object.remove(field),
    };
}

/// The text in a field of a value; empty if there is none.
pub fn text_in<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list in a field of a value; none if there is no list.
pub fn items_in<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether a field has a value at all.
pub fn has(object: &Object, path: &[&str]) -> bool {
    value(object, path).is_some_and(|value| !value.is_null())
}

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

/// Gives a field a value unless it has one.
pub fn set_default(object: &mut Object, field: &str, value: &str) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), value.into());
    }
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
