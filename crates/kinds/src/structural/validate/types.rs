//! The JSON type of a value, compared with its schema.

use serde_json::{Map, Value};

use crate::structural::node::{Kind, Node};

/// A value in an object, or the object itself.
#[derive(Clone, Copy)]
pub enum Given<'a> {
    Root(&'a Map<String, Value>),
    Value(&'a Value),
}

impl<'a> Given<'a> {
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
    given: Given<'_>,
) -> Option<(&'a str, &'static str)> {
    let expected = match (node.int_or_string, node.kind) {
        (true, _) => "integer,string",
        (false, Some(kind)) => kind.name(),
        (false, None) => "",
    };
    let is = |kind: Kind| match node.int_or_string {
        true => matches!(kind, Kind::Integer | Kind::String),
        false => node.kind == Some(kind),
    };
    let (actual, actual_format) = match given {
        Given::Root(_) | Given::Value(Value::Object(_)) => (Kind::Object, ""),
        Given::Value(Value::Null) => {
            return (!expected.is_empty() && !node.nullable).then_some((expected, "null"));
        }
        Given::Value(Value::Bool(_)) => (Kind::Boolean, ""),
        Given::Value(Value::Number(number)) if number.is_i64() => (Kind::Integer, "int64"),
        Given::Value(Value::Number(_)) => (Kind::Number, "float64"),
        Given::Value(Value::String(_)) => (Kind::String, ""),
        Given::Value(Value::Array(_)) => (Kind::Array, ""),
    };
    let is_whole_number = match given {
        Given::Value(Value::Number(number)) if actual == Kind::Number => {
            is(Kind::Integer) && number.as_f64().is_some_and(is_whole)
        }
        _ => false,
    };
    let fits = is(actual) || is_whole_number || (actual == Kind::Integer && is(Kind::Number));
    let is_text_like = matches!(actual, Kind::String | Kind::Array);
    match format {
        Some(format) if !is_text_like && !fits => Some((format, actual_format)),
        // Kubernetes accepts a list as a string here.
        Some(_) if is_text_like && !is(Kind::Number) && !is(Kind::Integer) => None,
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
