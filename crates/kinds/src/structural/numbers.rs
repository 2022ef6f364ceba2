//! Formats numbers as Kubernetes does.

use serde_json::{Map, Value};

/// The smallest number that Go formats with an exponent.
const EXPONENT_MIN: f64 = 1e21;

/// Formats each number that is not a 64-bit integer as Go formats a float.
pub fn normalize(object: &mut Map<String, Value>) {
    object.values_mut().for_each(normalize_value);
}

fn normalize_value(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXPONENT_MIN);
            // The shortest digits that identify the number, padded with zeros.
            let digits = float.map(|float| format!("{}", float + 0.0));
            if let Some(whole) = digits.and_then(|digits| serde_json::from_str(&digits).ok()) {
                *value = Value::Number(whole);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(normalize_value),
        Value::Object(object) => normalize(object),
        _ => {}
    }
}
