//! Looking into objects and changing them.

use serde_json::{Map, Value};

use crate::registry::Object;

/// What stands at a path.
pub fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// The text at a path; empty where there is none.
pub fn text_at<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or("")
}

/// The text of a field; empty where there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

/// The entries of the list at a path.
pub fn list<'a>(object: &'a Object, path: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    at(object, path).and_then(Value::as_array).into_iter().flatten()
}

/// An object below another; one that is absent, or no object, becomes an empty one.
pub fn child<'a>(object: &'a mut Object, key: &str) -> &'a mut Object {
    let value = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made an object just now")
}

/// A list below an object; one that is absent, or no list, becomes an empty one.
pub fn list_mut<'a>(object: &'a mut Object, key: &str) -> &'a mut Vec<Value> {
    let value = object.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it was made a list just now")
}

/// The lists of containers in a pod, in the order in which Kubernetes goes through them.
pub const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The containers of a pod.
pub fn containers(pod: &Object) -> impl Iterator<Item = &Value> {
    CONTAINERS.iter().flat_map(|key| list(pod, &["spec", key]))
}

/// The containers of a pod, to be changed.
pub fn containers_mut(pod: &mut Object) -> impl Iterator<Item = &mut Object> {
    let spec = pod.get_mut("spec").and_then(Value::as_object_mut).into_iter().flatten();
    let lists = spec.filter(|(key, _)| CONTAINERS.contains(&key.as_str()));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten().filter_map(Value::as_object_mut)
}
