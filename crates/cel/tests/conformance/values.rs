//! Values and types in the notation of the cases.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use cel::{Key, Map, Type, Value};
use serde_json::Value as Json;

/// The declared type of a variable, if it is supported.
pub fn declared_type(ty: &Json) -> Option<Type> {
    let (kind, of) = ty.as_object()?.iter().next()?;
    Some(match (kind.as_str(), of.as_str().unwrap_or_default()) {
        ("primitive", "BOOL") => Type::Bool,
        ("primitive", "INT64") => Type::Int,
        ("primitive", "UINT64") => Type::Uint,
        ("primitive", "DOUBLE") => Type::Double,
        ("primitive", "STRING") => Type::String,
        ("primitive", "BYTES") => Type::Bytes,
        ("wellKnown", "TIMESTAMP") => Type::Timestamp,
        ("wellKnown", "DURATION") => Type::Duration,
        ("dyn", _) => Type::Dyn,
        ("null", _) => Type::Null,
        ("listType", _) => Type::list(declared_type(&of["elemType"])?),
        ("mapType", _) => Type::map(declared_type(&of["keyType"])?, declared_type(&of["valueType"])?),
        _ => return None,
    })
}

/// The value of a variable.
pub fn to_value(json: &Json) -> Option<Value<'_>> {
    let (kind, of) = json.as_object()?.iter().next()?;
    let list = |of: &'_ Json| of.as_array().map_or(0, Vec::len);
    Some(match kind.as_str() {
        "nullValue" => Value::Null,
        "boolValue" => Value::Bool(of.as_bool()?),
        "int64Value" => Value::Int(of.as_str()?.parse().ok()?),
        "uint64Value" => Value::Uint(of.as_str()?.parse().ok()?),
        "doubleValue" => Value::Double(double(of)?),
        "stringValue" => Value::from(of.as_str()?),
        "bytesValue" => Value::Bytes(STANDARD.decode(of.as_str()?).ok()?.into()),
        "listValue" if list(&of["values"]) == 0 => Value::list(Vec::new()),
        "listValue" => Value::list(of["values"].as_array()?.iter().map(to_value).collect::<Option<_>>()?),
        "mapValue" => {
            let entries = of["entries"].as_array().into_iter().flatten();
            let entry = |entry: &'_ Json| Some((key(&entry["key"])?, to_value_owned(&entry["value"])?));
            Value::Map(Map::Owned(Arc::new(entries.map(entry).collect::<Option<_>>()?)))
        }
        _ => return None,
    })
}

/// A scalar map value; the applicable cases have no others.
fn to_value_owned(json: &Json) -> Option<Value<'static>> {
    Some(match to_value(json)? {
        Value::String(text) => text.to_string().into(),
        Value::Null => Value::Null,
        Value::Bool(value) => Value::Bool(value),
        Value::Int(number) => Value::Int(number),
        Value::Uint(number) => Value::Uint(number),
        Value::Double(number) => Value::Double(number),
        _ => return None,
    })
}

fn key(json: &Json) -> Option<Key<'static>> {
    Some(match to_value(json)? {
        Value::Bool(value) => Key::Bool(value),
        Value::Int(number) => Key::Int(number),
        Value::Uint(number) => Key::Uint(number),
        Value::String(text) => Key::String(text.to_string().into()),
        _ => return None,
    })
}

fn double(json: &Json) -> Option<f64> {
    match json.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        _ => json.as_f64(),
    }
}

/// Whether a value equals the expected one, including its type.
pub fn is_expected(value: &Value<'_>, json: &Json) -> bool {
    let Some((kind, of)) = json.as_object().and_then(|json| json.iter().next()) else { return false };
    match (kind.as_str(), value) {
        ("listValue", Value::List(list)) => {
            let expected: Vec<_> = of["values"].as_array().into_iter().flatten().collect();
            let same = |(item, json): (cel::Result<Value<'_>>, &&Json)| {
                item.is_ok_and(|item| is_expected(&item, json))
            };
            list.len() == expected.len() && list.iter().zip(&expected).all(same)
        }
        ("mapValue", Value::Map(map)) => {
            let expected: Vec<_> = of["entries"].as_array().into_iter().flatten().collect();
            let entries = map.entries().unwrap_or_default();
            let found = |entry: &&Json| {
                entries.iter().any(|(key, value)| {
                    is_expected(key, &entry["key"]) && is_expected(value, &entry["value"])
                })
            };
            entries.len() == expected.len() && expected.iter().all(found)
        }
        ("typeValue", Value::Type(ty)) => of.as_str() == Some(ty.name()),
        ("objectValue", Value::Timestamp(_) | Value::Duration(_)) => {
            let given = of["value"].as_str().unwrap_or_default();
            given.trim_end_matches('Z') == value.to_string().trim_end_matches('Z')
        }
        ("doubleValue", Value::Double(number)) => {
            // The JSON conversion of the cases may be off by the last bit.
            let is_near = |expected: f64| (expected - number).abs() <= expected.abs() * f64::EPSILON;
            let is_same = |expected: f64| expected == *number || expected.is_nan() && number.is_nan();
            double(of).is_some_and(|expected| is_same(expected) || is_near(expected))
        }
        (
            "nullValue" | "boolValue" | "int64Value" | "uint64Value" | "stringValue" | "bytesValue",
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::String(_)
            | Value::Bytes(_),
        ) => to_value(json).is_some_and(|expected| expected.ty() == value.ty() && expected.equals(value)),
        _ => false,
    }
}

/// A value for a message.
pub fn describe(value: &Value<'_>) -> String {
    match value {
        Value::List(list) => {
            let items: Vec<_> =
                list.iter().map(|item| item.map_or_else(|e| e.to_string(), |i| describe(&i))).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries = map.entries().unwrap_or_default();
            let entries: Vec<_> =
                entries.iter().map(|(k, v)| format!("{}: {}", describe(k), describe(v))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        _ => format!("{} {value}", value.ty()),
    }
}
