//! Reading and setting what the server owns in an object's metadata.

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
/// Deletion waits until the garbage collector has cut all dependents loose.
pub const ORPHAN: &str = "orphan";

/// `metadata` for reading.
pub fn metadata(object: &Object) -> Option<&Object> {
    object.get("metadata").and_then(Value::as_object)
}

/// `metadata` for writing; one that is absent or no object becomes an empty one.
pub fn metadata_mut(object: &mut Object) -> &mut Object {
    object::map_mut(object, "metadata")
}

/// A text in `metadata`; empty where it is absent.
pub fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object::text(object, &["metadata", key])
}

/// Takes owners out that are there already; gives the uids of those.
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

/// Takes a field of `metadata` away.
pub fn remove(object: &mut Object, key: &str) {
    metadata_mut(object).remove(key);
}

/// Gives a field of `metadata` the value it has in another object, or takes it away.
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

/// Adds or takes away one finalizer. False if it is so already.
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

/// Whether its deletion has begun.
pub fn is_being_deleted(object: &Object) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// Whether nothing holds its deletion back.
pub fn may_go(resource_type: &ResourceType, object: &Object) -> bool {
    finalizers(object).is_empty() && grace(object) == 0 && !resource_type.strategy.holds_deletion(object)
}

/// For how many seconds an object goes on whose deletion has begun.
pub fn grace(object: &Object) -> i64 {
    let grace = metadata(object).and_then(|metadata| metadata.get("deletionGracePeriodSeconds"));
    grace.and_then(Value::as_i64).unwrap_or(0)
}

/// Begins the deletion of an object that goes on until a time, and counts that as a change.
pub fn begin_deletion(resource_type: &ResourceType, object: &mut Object, now: Timestamp, grace: i64) {
    set_end(object, now, grace);
    let present = generation(object);
    if present > 0 {
        metadata_mut(object).insert("generation".to_owned(), (present + 1).into());
    }
    resource_type.strategy.prepare_delete(object);
}

/// Says when an object ends whose deletion began at a time.
pub fn set_end(object: &mut Object, begin: Timestamp, grace: i64) {
    let end = begin.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    set_text(object, "deletionTimestamp", &time(end));
    metadata_mut(object).insert("deletionGracePeriodSeconds".to_owned(), grace.into());
}

/// A time as Kubernetes writes it: whole seconds, UTC.
pub fn time(now: Timestamp) -> String {
    now.round(Unit::Second).unwrap_or(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metadata.generation`; zero where it is absent.
pub fn generation(object: &Object) -> i64 {
    let generation = metadata(object).and_then(|metadata| metadata.get("generation"));
    generation.and_then(Value::as_i64).unwrap_or(0)
}

/// What selectors may look at.
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
