//! Kind, version and metadata of custom objects and of embedded objects, which have built-in types.

use std::sync::LazyLock;

use model::error::{FieldError, Path};
use serde_json::{Map, Value};

use super::node::Node;
use crate::schema::{self, Mismatch, TypeId};

static OBJECT_META: LazyLock<TypeId> = LazyLock::new(|| {
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    schema::builtin().by_name(name).expect("the table of types has it")
});

/// Decodes the metadata of an object; returns a message per unknown field.
pub fn read(object: &mut Map<String, Value>) -> Result<Vec<String>, Mismatch> {
    read_at(object, "metadata")
}

fn read_at(object: &mut Map<String, Value>, path: &str) -> Result<Vec<String>, Mismatch> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let checked = schema::check_at(schema::builtin(), *OBJECT_META, metadata, path.to_owned())?;
    if let Value::Object(metadata) = metadata {
        metadata.retain(|key, value| key != "creationTimestamp" || !value.is_null());
    }
    Ok(checked.unknown)
}

/// Decodes the metadata of each embedded object; refuses values of wrong types.
pub fn read_embedded(root: &Node, object: &mut Map<String, Value>) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    visit_fields(root, object, &Path::OBJECT, &mut unknown)?;
    unknown.sort_unstable();
    Ok(unknown)
}

fn visit_fields(
    node: &Node,
    object: &mut Map<String, Value>,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    for (key, value) in object {
        let place = match node.field(key) {
            Some(_) => at.field(key),
            None => at.key(key),
        };
        if let Some(field) = node.at_key(key) {
            visit(field, field.embedded, value, &place, unknown)?;
        }
    }
    Ok(())
}

/// Decodes the metadata of a single value, which may be a resource.
pub fn read_value(
    node: &Node,
    is_resource: bool,
    value: &mut Value,
    at: &Path<'_>,
) -> Result<(), FieldError> {
    visit(node, is_resource, value, at, &mut Vec::new())
}

fn visit(
    node: &Node,
    is_resource: bool,
    value: &mut Value,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    match (value, &node.items) {
        (Value::Object(object), _) => {
            if is_resource {
                read_one(object, at, unknown)?;
            }
            visit_fields(node, object, at, unknown)
        }
        (Value::Array(list), Some(items)) => {
            let mut list = list.iter_mut().enumerate();
            list.try_for_each(|(index, item)| visit(items, items.embedded, item, &at.at(index), unknown))
        }
        _ => Ok(()),
    }
}

fn read_one(
    object: &mut Map<String, Value>,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    for field in ["apiVersion", "kind"] {
        if let Some(value) = object.get(field).filter(|value| !value.is_string()) {
            return Err(FieldError::invalid(at.field(field), value.clone(), "must be a string"));
        }
    }
    let given = object.get("metadata").cloned();
    let path = format!("{at}.metadata");
    let complaints = read_at(object, &path)
        .map_err(|mismatch| FieldError::invalid(path, given.unwrap_or_default(), mismatch.0))?;
    unknown.extend(complaints);
    Ok(())
}
