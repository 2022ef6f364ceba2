//! Reads and writes single values in the tree of an object.
//!
//! A path names the fields of maps. Kubernetes does not distinguish an absent text, number or list from an empty one, and
//! neither do these functions.

use serde_json::{Map, Value};

/// An object as a tree of values.
pub type Object = Map<String, Value>;

/// The value at a path.
pub fn value<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (last, parents) = path.split_last()?;
    let mut at = object;
    for parent in parents {
        at = at.get(*parent)?.as_object()?;
    }
    at.get(*last)
}

/// The value at a path, unless it is null.
pub fn present<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    value(object, path).filter(|value| !value.is_null())
}

/// The text at a path; empty if there is none.
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

/// The map in a field, which is created if there is none.
pub fn map_mut<'a>(object: &'a mut Object, field: &str) -> &'a mut Object {
    if !object.get(field).is_some_and(Value::is_object) {
        object.insert(field.to_owned(), Value::Object(Map::new()));
    }
    object.get_mut(field).and_then(Value::as_object_mut).expect("it is an object now")
}

/// The list in a field, which is created if there is none.
pub fn list_mut<'a>(object: &'a mut Object, field: &str) -> &'a mut Vec<Value> {
    if !object.get(field).is_some_and(Value::is_array) {
        object.insert(field.to_owned(), Value::Array(Vec::new()));
    }
    object.get_mut(field).and_then(Value::as_array_mut).expect("it is a list now")
}

/// Sets a field to its value in another object, or removes it. Mostly it has it already: a comparison costs
/// far less than a copy.
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

/// Whether there is a value at a path that is not null.
pub fn has(object: &Object, path: &[&str]) -> bool {
    present(object, path).is_some()
}

/// Sets a field unless it has a value.
pub fn set_default(object: &mut Object, field: &str, value: &str) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().expect("a map").clone()
    }

    #[test]
    fn absent_values_read_as_empty_ones() {
        let pod = object(
            json!({"metadata": {"name": "a", "labels": null}, "spec": {"list": [1, "b", {}], "n": 2}}),
        );
        assert_eq!(text(&pod, &["metadata", "name"]), "a");
        assert_eq!((text(&pod, &["metadata", "uid"]), text(&pod, &["metadata", "name", "x"])), ("", ""));
        assert_eq!((number(&pod, &["spec", "n"]), number(&pod, &["spec", "list"])), (2, 0));
        assert_eq!(value(&pod, &["metadata", "labels"]), Some(&Value::Null));
        assert_eq!(present(&pod, &["metadata", "labels"]), None);
        assert!(!has(&pod, &["metadata", "labels"]) && has(&pod, &["spec"]));
        assert_eq!(texts(&pod, &["spec", "list"]), ["", "b", ""]);
        assert_eq!(maps(&pod, &["spec", "list"]).map(|(index, _)| index).collect::<Vec<_>>(), [2]);
        assert_eq!((text_in(&pod["metadata"], "name"), text_in(&Value::Null, "name")), ("a", ""));
    }

    #[test]
    fn fields_of_another_type_are_replaced_where_a_map_or_a_list_is_written() {
        let mut pod = object(json!({"spec": null, "status": {"a": 1}}));
        map_mut(&mut pod, "spec").insert("x".to_owned(), 1.into());
        list_mut(map_mut(&mut pod, "status"), "conditions").push(2.into());
        assert_eq!(Value::from(pod), json!({"spec": {"x": 1}, "status": {"a": 1, "conditions": [2]}}));
    }

    #[test]
    fn a_field_is_copied_or_removed() {
        let (mut new, old) = (object(json!({"a": 1, "b": 2})), object(json!({"b": 3})));
        copy(&mut new, &old, "a");
        copy(&mut new, &old, "b");
        set_default(&mut new, "b", "x");
        set_default(&mut new, "c", "y");
        assert_eq!(Value::from(new), json!({"b": 3, "c": "y"}));
    }
}
