//! Conversion between JSON and values, one level at a time and by declaration.

use std::fmt;

use base64::Engine;
use serde_json::Value as Json;

use super::{List, Map, Str, Value};
use crate::{Declared, Error, Result, Type, time};

/// The nesting limit of JSON output.
const MAX_DEPTH: usize = 300;

impl<'a> Value<'a> {
    /// Converts a JSON value by its declaration, without its children.
    pub fn from_json(json: &'a Json, declared: &'a Declared) -> Result<Value<'a>> {
        Value::of_type(json, &declared.ty, declared)
    }

    fn of_type(json: &'a Json, ty: &'a Type, declared: &'a Declared) -> Result<Value<'a>> {
        let value = match (ty, json) {
            (_, Json::Null) => Some(Value::Null),
            (Type::Wrapper(inner), _) => return Value::of_type(json, inner, declared),
            (Type::Bool, Json::Bool(value)) => Some(Value::Bool(*value)),
            (Type::Int, Json::Number(number)) => {
                number.as_i64().or_else(|| whole(number.as_f64())).map(Value::Int)
            }
            (Type::Double, Json::Number(number)) => number.as_f64().map(Value::Double),
            (Type::String, Json::String(text)) => Some(Value::String(Str::Borrowed(text))),
            (Type::Bytes, Json::String(text)) => Some(Value::Bytes(bytes(text)?)),
            (Type::Duration, Json::String(text)) => Some(Value::Duration(
                time::Duration::parse(text)
                    .ok_or_else(|| Error::new(format!("Invalid duration {text}: invalid duration")))?,
            )),
            (Type::Timestamp, Json::String(text)) => Some(Value::Timestamp(
                time::Timestamp::parse_date_or_time(text)
                    .ok_or_else(|| Error::new(format!("Invalid date formatted string {text}")))?,
            )),
            (Type::List(_), Json::Array(items)) => Some(Value::List(List::Json { items, declared })),
            (Type::Map(_), Json::Object(entries)) => Some(Value::Map(Map::Json { entries, declared })),
            (Type::Object(object), Json::Object(entries)) => {
                Some(Value::Map(Map::Object { entries, object }))
            }
            (Type::Dyn, _) => Some(Value::dynamic(json)),
            _ => None,
        };
        value.ok_or_else(|| Error::new(format!("invalid data, expected {ty}, got {}", kind(json))))
    }

    /// Converts the value to JSON, if possible.
    pub fn to_json(&self) -> Result<Json> {
        self.to_json_at(0)
    }

    fn to_json_at(&self, depth: usize) -> Result<Json> {
        if depth > MAX_DEPTH {
            return Err(Error::new("value is nested too deep"));
        }
        Ok(match self {
            Value::Null | Value::Optional(None) => Json::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(number) => (*number).into(),
            Value::Uint(number) => (*number).into(),
            Value::Double(number) => (*number).into(),
            Value::String(text) => Json::String(text.to_string()),
            Value::Bytes(bytes) => base64::engine::general_purpose::STANDARD.encode(bytes).into(),
            Value::Duration(_) | Value::Timestamp(_) => self.to_string().into(),
            Value::Optional(Some(inner)) => inner.to_json_at(depth + 1)?,
            Value::List(list) => {
                let items = (0..list.len()).filter_map(|index| list.get(index));
                items.map(|item| item?.to_json_at(depth + 1)).collect::<Result<_>>()?
            }
            Value::Map(map) => {
                let entry = |(key, value): (Value<'a>, Value<'a>)| match key {
                    Value::String(key) => Ok((key.to_string(), value.to_json_at(depth + 1)?)),
                    key => {
                        Err(Error::new(format!("map key {key} is of type {}, not string", key.ty().name())))
                    }
                };
                Json::Object(map.entries()?.into_iter().map(entry).collect::<Result<_>>()?)
            }
            Value::Type(_) | Value::Opaque(_) => {
                return Err(Error::new(format!("type conversion error from '{}' to JSON", self.ty())));
            }
        })
    }

    /// Converts JSON without a declaration.
    fn dynamic(json: &'a Json) -> Value<'a> {
        let declared = Declared::dynamic();
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Value::Int(number),
                None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::String(Str::Borrowed(text)),
            Json::Array(items) => Value::List(List::Json { items, declared }),
            Json::Object(entries) => Value::Map(Map::Json { entries, declared }),
        }
    }
}

fn whole(number: Option<f64>) -> Option<i64> {
    number.filter(|number| number.fract() == 0.0 && number.abs() < 9e15).map(|number| number as i64)
}

fn bytes(text: &str) -> Result<std::sync::Arc<[u8]>> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
    decoded.map(Into::into).map_err(|_| Error::new(format!("Invalid byte formatted string {text}")))
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "list",
        Json::Object(_) => "object",
    }
}

/// The value as messages about keys show it.
impl fmt::Display for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => formatter.write_str("null"),
            Value::Bool(value) => value.fmt(formatter),
            Value::Int(number) => number.fmt(formatter),
            Value::Uint(number) => number.fmt(formatter),
            Value::Double(number) => formatter.write_str(&time::go_float(*number)),
            Value::String(text) => text.fmt(formatter),
            Value::Bytes(bytes) => formatter.write_str(&String::from_utf8_lossy(bytes)),
            Value::Duration(duration) => duration.fmt(formatter),
            Value::Timestamp(timestamp) => timestamp.fmt(formatter),
            Value::Type(ty) => formatter.write_str(ty.name()),
            Value::List(_) | Value::Map(_) | Value::Optional(_) | Value::Opaque(_) => {
                formatter.write_str(self.ty().name())
            }
        }
    }
}
