//! Validates the defaults of a schema against the schema.

use model::error::{FieldError, Path};
use serde_json::{Map, Value};

use super::node::Node;
use super::prune::{META_FIELDS, prune_value};
use super::{metadata, validate};

/// The errors of the defaults of a structural schema.
pub fn bad_defaults(root: &Node, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(root, true, None, at, &mut errors);
    errors
}

/// The path from a resource (the object or an embedded one) to a value in its kind, version or metadata.
struct Way<'a> {
    parent: Option<&'a Way<'a>>,
    /// The name of a field; `None` for an item of a list.
    step: Option<&'a str>,
}

impl Way<'_> {
    /// An object with kind, version and this value at the end of the path.
    fn enclosing_object(&self, value: Value) -> Map<String, Value> {
        let mut value = match self.step {
            Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
            None => Value::Array(vec![value]),
        };
        let mut way = self;
        while let Some(parent) = way.parent {
            value = match parent.step {
                Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
                None => Value::Array(vec![value]),
            };
            way = parent;
        }
        let mut object = value.as_object().cloned().unwrap_or_default();
        object.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        object.entry("kind").or_insert_with(|| "Validation".into());
        object
    }
}

/// Visits a schema node; `way` is set inside kind, version and metadata of a resource.
fn visit(node: &Node, is_root: bool, way: Option<&Way<'_>>, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let is_resource = is_root || node.embedded;
    let way = way.filter(|_| !is_resource);
    if let Some(default) = &node.default {
        let place = at.field("default");
        match way {
            Some(way) => errors.extend(bad_in_metadata(node, default, way, &place)),
            None => errors.extend(bad_default(node, is_resource, default, &place)),
        }
    }
    if let Some(items) = &node.items {
        let inner = way.map(|way| Way { parent: Some(way), step: None });
        visit(items, false, inner.as_ref(), &at.field("items"), errors);
    }
    let properties = at.field("properties");
    for (name, field) in &node.fields {
        let is_meta = is_resource && META_FIELDS.contains(&&**name);
        let inner = (is_meta || way.is_some()).then_some(Way { parent: way, step: Some(name) });
        visit(field, false, inner.as_ref(), &properties.key(name), errors);
    }
}

fn bad_default(node: &Node, is_resource: bool, default: &Value, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut pruned = default.clone();
    prune_value(node, is_resource, &mut pruned);
    if pruned != *default {
        errors.push(FieldError::invalid(at, default.clone(), "must not have unknown fields"));
    }
    let mut read = default.clone();
    if let Err(error) = metadata::read_value(node, is_resource, &mut read, at) {
        errors.push(error);
        return errors;
    }
    let embedded = validate::embedded(node, is_resource, &read, at);
    if embedded.is_empty() {
        errors.extend(validate::value(node, &read, &at.to_string()));
    }
    errors.extend(embedded);
    errors
}

/// The errors of a default inside metadata.
fn bad_in_metadata(node: &Node, default: &Value, way: &Way<'_>, at: &Path<'_>) -> Vec<FieldError> {
    let mut object = way.enclosing_object(default.clone());
    let refuse = |problem: String| {
        let detail = format!("must result in valid metadata: {problem}");
        vec![FieldError::invalid(at, default.clone(), detail)]
    };
    let given = object.get("metadata").cloned().unwrap_or_default();
    if let Err(mismatch) = metadata::read(&mut object) {
        return refuse(FieldError::invalid("metadata", given, mismatch.0).to_string());
    }
    let problems: Vec<String> = validate::resource(&object).iter().map(ToString::to_string).collect();
    match problems.as_slice() {
        [] => validate::value(node, default, &at.to_string()),
        [one] => refuse(one.clone()),
        several => refuse(format!("[{}]", several.join(", "))),
    }
}
