//! Patches of which the target need not be known: JSON patch (RFC 6902) and merge patch (RFC 7386).
//!
//! Both are applied as kube-apiserver does, which is more lenient than the standards. A patch that is not even JSON
//! is answered by the caller, with `error decoding patch: ` before the message of the parser.

pub mod json;
pub mod merge;

use serde_json::Value;

use crate::error::Error;

/// What kube-apiserver says of a patch of the wrong JSON type; `expected` is the name of a Go type.
fn wrong_type(given: &Value, expected: &str) -> Error {
    let given = match given {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Error::bad_request(format!("error decoding patch: json: cannot unmarshal {given} into Go {expected}"))
}
