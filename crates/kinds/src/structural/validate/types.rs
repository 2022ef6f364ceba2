//! The JSON type of a value, compared with its schema.

use serde_json::{Map, Value};

use crate::structural::node::{Node, ValueType};

/// A value in an object, or the object itself.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    Root(&'a Map<String, Value>),
    Value(&'a Value),
}

impl<'a> Input<'a> {
    /// The value as an object.
    pub fn object(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Root(object) => Some(object),
            Self::Value(value) => value.as_object(),
        }
    }
}

/// The expected type and the actual one; `None` if they match.
pub fn type_problem<'a>(
    node: &Node,
    format: Option<&'a str>,
    given: Input<'_>,
) -> Option<(&'a str, &'static str)> {
    let expected = match (node.int_or_string, node.kind) {
        (true, _) => "integer,string",
        (false, Some(kind)) => kind.name(),
        (false, None) => "",
    };
    let is = |kind: ValueType| match node.int_or_string {
        true => matches!(kind, ValueType::Integer | ValueType::String),
        false => node.kind == Some(kind),
    };
    let (actual, actual_format) = match given {
        Input::Root(_) | Input::Value(Value::Object(_)) => (ValueType::Object, ""),
        Input::Value(Value::Null) => {
            return (!expected.is_empty() && !node.nullable).then_some((expected, "null"));
        }
        Input::Value(Value::Bool(_)) => (ValueType::Boolean, ""),
        Input::Value(Value::Number(number)) if number.is_i64() => (ValueType::Integer, "int64"),
        Input::Value(Value::Number(_)) => (ValueType::Number, "float64"),
        Input::Value(Value::String(_)) => (ValueType::String, ""),
        Input::Value(Value::Array(_)) => (ValueType::Array, ""),
    };
    let is_whole_number = match given {
        Input::Value(Value::Number(number)) if actual == ValueType::Number => {
            is(ValueType::Integer) && number.as_f64().is_some_and(is_whole)
        }
        _ => false,
    };
    let fits = is(actual) || is_whole_number || (actual == ValueType::Integer && is(ValueType::Number));
    let is_text_like = matches!(actual, ValueType::String | ValueType::Array);
    match format {
        Some(format) if !is_text_like && !fits => Some((format, actual_format)),
        // Kubernetes accepts a list as a string here.
        Some(_) if is_text_like && !is(ValueType::Number) && !is(ValueType::Integer) => None,
        _ => (!fits).then(|| (expected, actual.name())),
    }
}

/// Whether a number is an integer that JSON can represent, up to a rounding error.
pub fn is_whole(number: f64) -> bool {
    const SAFE_MAX: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !number.is_finite() || number.abs() > SAFE_MAX {
        return false;
    }
    let difference = (number - number.trunc()).abs();
    difference == 0.0
        || (number > 0.0 && difference / (number + number.trunc()) < EPSILON && number.trunc() != 0.0)
}

/// Whether a value equals an enum value; numbers are converted to the type of the enum value.
pub fn is_same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) => match (value.as_i64(), allowed.as_i64()) {
            (Some(value), Some(allowed)) => value == allowed,
            #[expect(clippy::cast_possible_truncation, reason = "the conversion of Go")]
            (None, Some(allowed)) => value.as_f64().is_some_and(|value| value as i64 == allowed),
            _ => value.as_f64() == allowed.as_f64(),
        },
        (value, allowed) => value == allowed,
    }
}
