//! Patches: JSON patch (RFC 6902), merge patch (RFC 7386), and the strategic merge patch of Kubernetes.
//!
//! They are applied as by kube-apiserver, which is more lenient than the RFCs. The caller reports a patch that is not
//! JSON, with `error decoding patch: ` before the message of the parser.

pub mod json;
pub mod merge;
pub mod strategic;

use model::error::Error;
use serde_json::Value;

/// kube-apiserver's error for a patch of the wrong JSON type; `expected` is the name of a Go type.
fn wrong_type(given: &Value, expected: &str) -> Error {
    Error::bad_request(format!("error decoding patch: {}", cannot_unmarshal(given, expected)))
}

/// Go's error for a value of the wrong JSON type; `expected` is the Go type of the target.
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

/// A value in Go's `%v` format, in which error messages show patches.
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
