//! `ApplyConfiguration` of a mutating admission policy: merged like an apply, but without field managers.

use model::Object;
use serde_json::Value;

use super::check::check;
use super::element::Element;
use super::merge::merge;
use super::types::{Form, Node, Relation};

/// Merges a configuration into an object. Neither has kind and version.
///
/// # Errors
/// The configuration does not match the type, or would replace an atomic struct, map or list.
pub fn merge_configuration(types: Node<'_>, live: &Object, config: &Object) -> Result<Object, String> {
    check(types, config)
        .map_err(|problem| format!("failed to convert patch object to typed object: {problem}"))?;
    let mut whole = Vec::new();
    let Some(map) = types.resolve().map else { return Ok(config.clone()) };
    for (name, value) in config {
        if let Some(node) = map.field(name) {
            atomic_parts(node, value, &Element::field(name).to_string(), &mut whole);
        }
    }
    if !whole.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            whole.join(", ")
        ));
    }
    merge(types, live, config).map_err(|problem| format!("failed to merge patch: {problem}"))
}

/// Collects the atomic structs, maps and lists.
fn atomic_parts(node: Node<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match (node.form(value), value) {
        (Form::Map(map), Value::Object(entries)) => {
            if map.atomic {
                found.push(path.to_owned());
            }
            for (name, value) in entries {
                if let Some(child) = map.field(name) {
                    atomic_parts(child, value, &format!("{path}{}", Element::field(name)), found);
                }
            }
        }
        (Form::List(list), Value::Array(items)) => {
            if matches!(list.relation, Relation::Atomic) {
                found.push(path.to_owned());
            }
            for (index, item) in (0i64..).zip(items) {
                atomic_parts(list.item, item, &format!("{path}{}", Element::Index(index)), found);
            }
        }
        _ => {}
    }
}
