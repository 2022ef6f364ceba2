//! `x-kubernetes-list-type`: lists that are sets or maps.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{is_true, text, texts};
use serde_json::Value;

const TYPES: [&str; 3] = ["atomic", "set", "map"];

/// Validates the list type of a schema and its keys.
pub fn bad_list_type(schema: &Object, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    let items = schema.get("items").and_then(Value::as_object);
    if list_type.is_some() {
        let detail = "must be array if x-kubernetes-list-type is specified";
        match text(schema, &["type"]) {
            "array" => errors.extend(items.filter(|_| list_type == Some("set")).and_then(|i| bad_set(i, at))),
            "" => errors.push(FieldError::required(at.field("type"), detail)),
            kind => errors.push(FieldError::invalid(at.field("type"), kind, detail)),
        }
    }
    if let Some(list_type) = list_type.filter(|list_type| !TYPES.contains(list_type)) {
        errors.push(FieldError::not_supported(at.field("x-kubernetes-list-type"), list_type, &TYPES));
    }
    let keys = texts(schema, &["x-kubernetes-list-map-keys"]);
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(at.field("x-kubernetes-list-type"), detail),
            Some(other) => FieldError::invalid(at.field("x-kubernetes-list-type"), other, detail),
        });
    }
    if list_type == Some("map") {
        bad_map(schema, &keys, at, errors);
    }
    if let Some((items, list_type)) = items.zip(list_type.filter(|kind| matches!(*kind, "set" | "map"))) {
        bad_items(items, list_type, &keys, at, errors);
    }
}

/// Validates the items of a set, which must be scalar or atomic.
fn bad_set(items: &Object, at: &Path<'_>) -> Option<FieldError> {
    let list_type = items.get("x-kubernetes-list-type");
    let key = match text(items, &["type"]) {
        "array" if list_type.is_some_and(|list_type| list_type != "atomic") => "x-kubernetes-list-type",
        "object" if text(items, &["x-kubernetes-map-type"]) != "atomic" => "x-kubernetes-map-type",
        _ => return None,
    };
    let place = at.field("items");
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let value = list_type.cloned().unwrap_or_default();
    Some(FieldError::invalid(place.field(key), value, detail))
}

fn bad_map(schema: &Object, keys: &[&str], at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at.field("x-kubernetes-list-map-keys"), detail));
    }
    let items = match schema.get("items") {
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(at.field("items"), detail));
            return;
        }
        Some(Value::Object(items)) => items,
        Some(list) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(at.field("items"), list.clone(), detail));
            return;
        }
    };
    let kind = text(items, &["type"]);
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(at.field("items.type"), kind, detail));
        return;
    }
    let mut seen = BTreeSet::new();
    for key in keys {
        let mut refuse = |detail| {
            errors.push(FieldError::invalid(at.field("x-kubernetes-list-map-keys"), keys.to_vec(), detail));
        };
        let field = field_of(items, key);
        if field.is_none() {
            refuse("entries must all be names of item properties");
        }
        let is_duplicate = !seen.insert(key);
        if field.is_some_and(|field| matches!(text(field, &["type"]), "array" | "object")) {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(
                at.field("items.properties").key(key).field("type"),
                kind,
                detail,
            ));
        }
        if is_duplicate {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(at.field("x-kubernetes-list-map-keys"), keys.to_vec(), detail));
        }
    }
}

fn field_of<'a>(schema: &'a Object, name: &str) -> Option<&'a Object> {
    schema.get("properties")?.get(name)?.as_object()
}

/// Validates the items of a list and their keys, which must be specified.
fn bad_items(items: &Object, list_type: &str, keys: &[&str], at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if is_true(items, &["nullable"]) {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at.field("items.nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    let required = texts(items, &["required"]);
    let properties = at.field("items.properties");
    for key in keys {
        let Some(field) = field_of(items, key) else { continue };
        let place = properties.key(key);
        if !required.contains(key) && !field.contains_key("default") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                          required property";
            errors.push(FieldError::required(place.field("default"), detail));
        }
        if is_true(field, &["nullable"]) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(place.field("nullable"), detail));
        }
    }
}
