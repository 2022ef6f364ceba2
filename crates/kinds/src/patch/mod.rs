//! Patches: JSON patch (RFC 6902), merge patch (RFC 7386), and the strategic merge patch of Kubernetes.
//!
//! They are applied as kube-apiserver does, which is more lenient than the standards. A patch that is not even JSON
//! is answered by the caller, with `error decoding patch: ` before the message of the parser.

pub mod json;
pub mod merge;
pub mod strategic;

use model::error::Error;
use serde_json::Value;

/// What kube-apiserver says of a patch of the wrong JSON type; `expected` is the name of a Go type.
fn wrong_type(given: &Value, expected: &str) -> Error {
    Error::bad_request(format!("error decoding patch: {}", cannot_unmarshal(given, expected)))
}

/// What Go says of a value of the wrong JSON type; `expected` is what it should become.
pub fn cannot_unmarshal(given: &Value, expected: &str) -> String {
    format!("json: cannot unmarshal {} into Go {expected}", json_type(given))
}

/// The JSON type of a value, by Go's name for it.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as Go prints it with `%v`, which is how texts of errors show patches.
pub fn go_text(value: &Value) -> String {
    let joined = |texts: Vec<String>| texts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(go_text).collect())),
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let texts = sorted.into_iter().map(|(key, field)| format!("{key}:{}", go_text(field)));
            format!("map[{}]", joined(texts.collect()))
        }
        other => other.to_string(),
    }
}
