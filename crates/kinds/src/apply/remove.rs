//! Removes fields from an object.

use serde_json::{Map, Value};

use super::element::Element;
use super::set::FieldSet;
use super::types::{Form, List, Mapping, Node, Relation};

/// The object without the fields of a set; a value that becomes empty is `null`.
pub(super) fn without_fields(
    node: Node<'_>,
    object: &Map<String, Value>,
    set: &FieldSet<'_>,
) -> Map<String, Value> {
    match node.resolve().map {
        Some(map) => of_entries(map, object, set),
        None => object.clone(),
    }
}

fn of_value(node: Node<'_>, value: &Value, set: &FieldSet<'_>) -> Value {
    match (node.form(value), value) {
        (Form::Scalar(_), value) => value.clone(),
        (
            Form::List(List { relation: Relation::Atomic, .. }) | Form::Map(Mapping { atomic: true, .. }),
            _,
        ) => Value::Null,
        (Form::List(list), Value::Array(items)) => {
            let kept = of_items(list, items, set);
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Form::Map(map), Value::Object(entries)) => {
            let kept = of_entries(map, entries, set);
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Form::List(_) | Form::Map(_), _) => Value::Null,
    }
}

fn of_entries(map: Mapping<'_>, entries: &Map<String, Value>, set: &FieldSet<'_>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in entries {
        let value = match (set.get(&Element::field(name)), map.child(name)) {
            (Some(entry), _) if entry.member => continue,
            (Some(entry), Some(node)) => of_value(node, value, &entry.children),
            (_, _) => value.clone(),
        };
        kept.insert(name.clone(), value);
    }
    kept
}

fn of_items(list: List<'_>, items: &[Value], set: &FieldSet<'_>) -> Vec<Value> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        match list.element(item).ok().and_then(|element| set.get(&element)) {
            Some(entry) if entry.member => {}
            Some(entry) => kept.push(of_value(list.item, item, &entry.children)),
            None => kept.push(item.clone()),
        }
    }
    kept
}
