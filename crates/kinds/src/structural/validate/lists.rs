//! Validates lists that are sets or maps: items are unique.

use std::collections::HashMap;

use model::error::{FieldError, Path};
use serde_json::{Map, Value};

use super::errors::Errors;
use crate::structural::node::{ListType, Node};

/// The duplicates in the lists of an object.
pub fn validate(root: &Node, object: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    visit_object(root, object, &Path::OBJECT, &mut errors);
    errors.into_list()
}

fn visit_object(node: &Node, object: &Map<String, Value>, at: &Path<'_>, errors: &mut Errors) {
    for (key, value) in object {
        if errors.is_full() {
            return;
        }
        if let Some(field) = node.field(key) {
            visit(field, value, &at.field(key), errors);
        } else if let Some(values) = super::correlate::values_of(node) {
            visit(values, value, &at.key(key), errors);
        }
    }
}

fn visit(node: &Node, value: &Value, at: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Object(object) => visit_object(node, object, at, errors),
        Value::Array(list) => {
            match &node.list_type {
                ListType::Set => duplicates(list.iter(), at, errors, |index| list[index].clone()),
                ListType::Map(keys) => check_map(keys, list, at, errors),
                ListType::Unset | ListType::Atomic => {}
            }
            if let Some(items) = &node.items {
                for (index, item) in list.iter().enumerate() {
                    if errors.is_full() {
                        return;
                    }
                    visit(items, item, &at.at(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_map(keys: &[Box<str>], list: &[Value], at: &Path<'_>, errors: &mut Errors) {
    let stray = list.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = stray {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(at.at(index), list[index].clone(), detail));
        return;
    }
    let key_of = |item: &Value| -> Value {
        let fields = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
        Value::Object(fields.collect())
    };
    let identities: Vec<Value> = list.iter().map(key_of).collect();
    duplicates(identities.iter(), at, errors, |index| identities[index].clone());
}

/// Reports the second of equal values, but no further ones.
fn duplicates<'a>(
    values: impl Iterator<Item = &'a Value>,
    at: &Path<'_>,
    errors: &mut Errors,
    shown: impl Fn(usize) -> Value,
) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 && !errors.is_full() {
            errors.push(FieldError::duplicate(at.at(index), shown(index)));
        }
    }
}
