//! Accessors of object metadata.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp, Unit};
use model::Attributes;
use model::object;
use serde_json::{Value, json};

use super::crd::STATE;
use crate::registry::custom::state as crd_state;
use crate::registry::{Object, ResourceType};

/// Deletion waits until the garbage collector has deleted all dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Deletion waits until the garbage collector has orphaned all dependents.
pub const ORPHAN: &str = "orphan";

/// `metadata` for reading.
pub fn metadata(object: &Object) -> Option<&Object> {
    object.get("metadata").and_then(Value::as_object)
}

/// `metadata` for writing; created if it is absent or no object.
pub fn metadata_mut(object: &mut Object) -> &mut Object {
    object::map_mut(object, "metadata")
}

/// A text in `metadata`; empty if absent.
pub fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object::text(object, &["metadata", key])
}

/// Removes duplicate owner references, and returns their uids.
pub fn take_doubled_owners(object: &mut Object) -> Vec<String> {
    let owners = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"));
    let Some(Value::Array(owners)) =
        owners.filter(|owners| owners.as_array().is_some_and(|list| list.len() > 1))
    else {
        return Vec::new();
    };
    let (mut seen, mut doubled) = (HashSet::new(), Vec::new());
    owners.retain(|owner| {
        let is_new = seen.insert(owner.to_string());
        if !is_new {
            doubled.extend(owner["uid"].as_str().map(str::to_owned));
        }
        is_new
    });
    doubled
}

/// Sets a text in `metadata`.
pub fn set_text(object: &mut Object, key: &str, value: &str) {
    metadata_mut(object).insert(key.to_owned(), Value::from(value));
}

/// Removes a field of `metadata`.
pub fn remove(object: &mut Object, key: &str) {
    metadata_mut(object).remove(key);
}

/// Copies a field of `metadata` from another object, or removes it.
pub fn keep(object: &mut Object, from: &Object, key: &str) {
    match metadata(from).and_then(|metadata| metadata.get(key)) {
        Some(value) => metadata_mut(object).insert(key.to_owned(), value.clone()),
        None => metadata_mut(object).remove(key),
    };
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Object) -> Vec<&str> {
    let list = metadata(object).and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Adds or removes a finalizer; false if nothing changed.
pub fn set_finalizer(object: &mut Object, name: &str, present: bool) -> bool {
    let names = finalizers(object);
    if names.contains(&name) == present {
        return false;
    }
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if present {
        names.push(name.to_owned());
    } else {
        names.retain(|n| n != name);
    }
    if names.is_empty() {
        remove(object, "finalizers");
    } else {
        metadata_mut(object).insert("finalizers".to_owned(), json!(names));
    }
    true
}

/// Whether it has a deletionTimestamp.
pub fn is_being_deleted(object: &Object) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// Whether no finalizer or kind rule holds the deletion.
pub fn can_be_removed(resource_type: &ResourceType, object: &Object) -> bool {
    finalizers(object).is_empty() && grace(object) == 0 && !resource_type.strategy.holds_deletion(object)
}

/// `metadata.deletionGracePeriodSeconds`; zero if absent.
pub fn grace(object: &Object) -> i64 {
    let grace = metadata(object).and_then(|metadata| metadata.get("deletionGracePeriodSeconds"));
    grace.and_then(Value::as_i64).unwrap_or(0)
}

/// Sets deletionTimestamp and grace period, and increments the generation.
pub fn begin_deletion(resource_type: &ResourceType, object: &mut Object, now: Timestamp, grace: i64) {
    set_end(object, now, grace);
    let present = generation(object);
    if present > 0 {
        metadata_mut(object).insert("generation".to_owned(), (present + 1).into());
    }
    resource_type.strategy.prepare_delete(object);
}

/// Sets deletionTimestamp and grace period of a deletion that began earlier.
pub fn set_end(object: &mut Object, begin: Timestamp, grace: i64) {
    let end = begin.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    set_text(object, "deletionTimestamp", &time(end));
    metadata_mut(object).insert("deletionGracePeriodSeconds".to_owned(), grace.into());
}

/// A timestamp in Kubernetes' format: whole seconds, UTC.
pub fn time(now: Timestamp) -> String {
    now.round(Unit::Second).unwrap_or(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metadata.generation`; zero if absent.
pub fn generation(object: &Object) -> i64 {
    let generation = metadata(object).and_then(|metadata| metadata.get("generation"));
    generation.and_then(Value::as_i64).unwrap_or(0)
}

/// The labels and fields for selectors.
pub fn attributes(resource_type: &ResourceType, object: &Object) -> Attributes {
    let labels = metadata(object).and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let strategy = &resource_type.strategy;
    let fields = strategy.selectable_fields().iter();
    let fields = fields.map(|path| (path.clone().into_owned(), strategy.field(object, path)));
    let state = resource_type.is_crd().then(|| (STATE.to_owned(), crd_state(object)));
    Attributes::new(labels.collect(), fields.chain(state).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_in_utc() {
        let now: Timestamp = "2026-01-02T03:04:05.4Z".parse().unwrap();
        assert_eq!(time(now), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn finalizers_come_and_go() {
        let mut object = Object::new();
        set_finalizer(&mut object, ORPHAN, true);
        set_finalizer(&mut object, ORPHAN, true);
        assert_eq!(finalizers(&object), [ORPHAN]);
        set_finalizer(&mut object, FOREGROUND, false);
        set_finalizer(&mut object, ORPHAN, false);
        assert_eq!(object.get("metadata"), Some(&json!({})));
    }
}
