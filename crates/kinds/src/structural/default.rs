//! Applies the defaults of a schema.

use serde_json::{Map, Value};

use super::node::{Node, Values};

/// The disallowed nulls without a default that are dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// All of them.
    All,
    /// Only those without a type, which validation does not find.
    Untyped,
}

/// Drops nulls that are neither nullable nor defaulted, except in lists.
pub fn drop_nulls(node: &Node, object: &mut Map<String, Value>, which: Nulls) {
    object.retain(|key, value| {
        let Some(field) = node.at_key(key) else { return true };
        if value.is_null() && !field.nullable && field.default.is_none() {
            let has_type = field.kind.is_some() || field.int_or_string;
            return which == Nulls::Untyped && has_type;
        }
        drop_nulls_in(field, value, which);
        true
    });
}

fn drop_nulls_in(node: &Node, value: &mut Value, which: Nulls) {
    match (value, &node.items) {
        (Value::Object(object), _) => drop_nulls(node, object, which),
        (Value::Array(list), Some(items)) => {
            list.iter_mut().for_each(|item| drop_nulls_in(items, item, which));
        }
        _ => {}
    }
}

/// Sets the defaults of missing fields and of fields with a disallowed `null`.
pub fn fill(node: &Node, object: &mut Map<String, Value>) {
    for (name, field) in &node.fields {
        let Some(default) = &field.default else { continue };
        let lacks = match object.get(&**name) {
            None => true,
            Some(value) => value.is_null() && !field.nullable,
        };
        if lacks {
            object.insert(name.to_string(), (**default).clone());
        }
    }
    for (key, value) in object {
        match (node.field(key), &node.values) {
            (Some(field), _) => fill_in(field, value),
            (None, Values::Of(values)) => fill_null(values, value),
            (None, Values::Closed | Values::Any | Values::Forbidden) => {}
        }
    }
}

fn fill_null(node: &Node, value: &mut Value) {
    if let Some(default) = node.default.as_ref().filter(|_| value.is_null() && !node.nullable) {
        *value = (**default).clone();
    }
    fill_in(node, value);
}

fn fill_in(node: &Node, value: &mut Value) {
    match (value, &node.items) {
        (Value::Object(object), _) => fill(node, object),
        (Value::Array(list), Some(items)) => list.iter_mut().for_each(|item| fill_null(items, item)),
        _ => {}
    }
}
