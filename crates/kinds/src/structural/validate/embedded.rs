//! Validates embedded resources: objects with kind, version and metadata.

use model::error::{FieldError, Path};
use model::names::{NameRule, dns1035_label};
use serde_json::{Map, Value};

use super::errors::Errors;
use crate::structural::{metadata, node::Node};
use crate::validation::validate_object_meta;

/// The errors of the resources embedded in an object.
pub fn validate(root: &Node, object: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    visit_fields(root, object, &Path::OBJECT, &mut errors);
    errors.into_list()
}

/// The errors of a single value, which may be a resource, and of the resources embedded in it.
pub fn validate_value(node: &Node, is_resource: bool, value: &Value, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    visit(node, is_resource, value, at, &mut errors);
    errors.into_list()
}

fn visit(node: &Node, is_resource: bool, value: &Value, at: &Path<'_>, errors: &mut Errors) {
    match (value, &node.items) {
        (Value::Object(object), _) => {
            if is_resource {
                check(object, at, errors);
            }
            visit_fields(node, object, at, errors);
        }
        (Value::Array(list), Some(items)) => {
            for (index, item) in list.iter().enumerate() {
                if errors.is_full() {
                    return;
                }
                visit(items, items.embedded, item, &at.at(index), errors);
            }
        }
        _ => {}
    }
}

fn visit_fields(node: &Node, object: &Map<String, Value>, at: &Path<'_>, errors: &mut Errors) {
    for (key, value) in object {
        if errors.is_full() {
            return;
        }
        if let Some(field) = node.field(key) {
            visit(field, field.embedded, value, &at.field(key), errors);
        } else if let Some(values) = super::correlate::values_of(node) {
            visit(values, values.embedded, value, &at.key(key), errors);
        }
    }
}

/// Validates kind, version and metadata of an object.
pub fn check(object: &Map<String, Value>, at: &Path<'_>, errors: &mut Errors) {
    let path = |field| at.field(field);
    for field in ["apiVersion", "kind"] {
        if !object.contains_key(field) {
            errors.push(FieldError::required(path(field), ""));
        }
    }
    for (field, check) in [("apiVersion", bad_version as fn(&str) -> Option<String>), ("kind", bad_kind)] {
        let problem = match object.get(field) {
            None => None,
            Some(Value::String(text)) if text.is_empty() => Some("must not be empty".to_owned()),
            Some(Value::String(text)) => check(text),
            Some(_) => Some("must be a string".to_owned()),
        };
        let value = object.get(field).cloned().unwrap_or_default();
        errors.extend(problem.map(|problem| FieldError::invalid(path(field), value, problem)));
    }
    if object.contains_key("metadata") {
        errors.extend(bad_metadata(object, &path("metadata")));
    }
}

fn bad_version(version: &str) -> Option<String> {
    let slashes = version.matches('/').count();
    (slashes > 1).then(|| format!("unexpected GroupVersion string: {version}"))
}

fn bad_kind(kind: &str) -> Option<String> {
    let problems = dns1035_label(&kind.to_lowercase());
    (!problems.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {}", problems.join(",")))
}

/// The errors of the metadata of an embedded resource, which may have no name.
fn bad_metadata(object: &Map<String, Value>, path: &Path<'_>) -> Vec<FieldError> {
    let given = &object["metadata"];
    let mut alone = Map::from_iter([("metadata".to_owned(), given.clone())]);
    if let Err(mismatch) = metadata::read(&mut alone) {
        return vec![FieldError::invalid(path, given.clone(), mismatch.0)];
    }
    if let Some(Value::Object(metadata)) = alone.get_mut("metadata") {
        metadata.entry("name").or_insert_with(|| "fakename".into());
    }
    let has_namespace = given.get("namespace").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let mut errors = validate_object_meta(&alone, has_namespace, NameRule::PathSegment);
    for error in &mut errors {
        let rest = error.path.strip_prefix("metadata").unwrap_or(&error.path);
        error.path = format!("{path}{rest}");
    }
    errors
}
