//! Kubernetes' errors for a patched object that does not match its type. Kubernetes does not decode the result of a
//! strategic merge patch as JSON, but converts its values to Go's types one by one.

use serde_json::Value;

use crate::patch::cannot_unmarshal;
use crate::schema::{Schema, Shape, TypeId};

/// The error of the first value that does not fit its type. `None` if the message is that of any other body.
pub fn unfit(schema: &Schema, of: TypeId, document: &Value) -> Option<String> {
    value(schema, &Shape::Object(of), document)
}

fn value(schema: &Schema, shape: &Shape, found: &Value) -> Option<String> {
    match (shape, found) {
        (_, Value::Null) => None,
        (Shape::Object(id), Value::Object(fields)) => {
            let of = schema.get(*id);
            fields.iter().find_map(|(name, found)| value(schema, &of.field(name)?.shape, found))
        }
        (Shape::Map(item), Value::Object(entries)) => {
            entries.values().find_map(|found| value(schema, item, found))
        }
        (Shape::List(item) | Shape::Wrapped(item), Value::Array(items)) => {
            items.iter().find_map(|found| value(schema, item, found))
        }
        (Shape::Object(_), _) => Some(format!("cannot restore struct from: {}", kind(found))),
        (Shape::Map(_), _) => Some(format!("cannot restore map from {}", kind(found))),
        (Shape::List(_) | Shape::Wrapped(_), _) => Some(format!("cannot restore slice from {}", kind(found))),
        (Shape::Bytes, Value::Object(_) | Value::Number(_) | Value::Bool(_)) => {
            Some(format!("cannot restore slice from {}", kind(found)))
        }
        (Shape::Time | Shape::MicroTime, found) if !found.is_string() => {
            Some(cannot_unmarshal(found, "value of type string"))
        }
        (Shape::IntOrString, Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
            Some(cannot_unmarshal(found, "value of type int32"))
        }
        (Shape::String { go, .. }, found) => scalar(go, "string", found, Value::is_string),
        (Shape::Bool, found) => scalar("bool", "bool", found, Value::is_boolean),
        (Shape::Int32, found) => scalar("int32", "int32", found, Value::is_i64),
        (Shape::Int64, found) => scalar("int64", "int64", found, Value::is_i64),
        (Shape::Double, found) => scalar("float64", "float64", found, Value::is_number),
        _ => None,
    }
}

/// Go can convert between numbers, and from an integer to a string, but Kubernetes refuses both with a message of its
/// own.
fn scalar(go: &str, kind_of_go: &str, found: &Value, fits: fn(&Value) -> bool) -> Option<String> {
    if fits(found) {
        return None;
    }
    let from = kind(found);
    let is_convertible = match kind_of_go {
        "string" => from == "int64",
        "bool" => false,
        _ => found.is_number(),
    };
    Some(if is_convertible {
        format!("cannot convert {from} to {go}")
    } else {
        format!("unrecognized type: {kind_of_go}")
    })
}

/// Go's kind of a value that was decoded without a type.
fn kind(found: &Value) -> &'static str {
    match found {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
