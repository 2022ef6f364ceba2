//! Conversions between types.

use super::{a, identity};
use crate::{Call, Duration, Error, Implementation, Library, Overload, Result, Timestamp, Type, Value};

pub(super) fn library() -> Library {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    Library::new()
        .function("type", [Overload::global("type", [a()], Type::type_of(a()), type_of)])
        .function("dyn", [Overload::global("to_dyn", [a()], Type::Dyn, identity)])
        .function("bool", to(&Bool, to_bool, &[("bool_to_bool", Bool), ("string_to_bool", String)]))
        .function("bytes", to(&Bytes, to_bytes, &[("bytes_to_bytes", Bytes), ("string_to_bytes", String)]))
        .function(
            "double",
            to(
                &Double,
                to_double,
                &[
                    ("double_to_double", Double),
                    ("int64_to_double", Int),
                    ("string_to_double", String),
                    ("uint64_to_double", Uint),
                ],
            ),
        )
        .function(
            "duration",
            to(
                &Duration,
                to_duration,
                &[
                    ("duration_to_duration", Duration),
                    ("int64_to_duration", Int),
                    ("string_to_duration", String),
                ],
            ),
        )
        .function("int", to(&Int, to_int, &INT_SOURCES))
        .function("string", to(&String, to_string, &STRING_SOURCES))
        .function(
            "timestamp",
            to(
                &Timestamp,
                to_timestamp,
                &[
                    ("timestamp_to_timestamp", Timestamp),
                    ("int64_to_timestamp", Int),
                    ("string_to_timestamp", String),
                ],
            ),
        )
        .function(
            "uint",
            to(
                &Uint,
                to_uint,
                &[
                    ("uint64_to_uint64", Uint),
                    ("double_to_uint64", Double),
                    ("int64_to_uint64", Int),
                    ("string_to_uint64", String),
                ],
            ),
        )
}

const INT_SOURCES: [(&str, Type); 6] = [
    ("int64_to_int64", Type::Int),
    ("double_to_int64", Type::Double),
    ("duration_to_int64", Type::Duration),
    ("string_to_int64", Type::String),
    ("timestamp_to_int64", Type::Timestamp),
    ("uint64_to_int64", Type::Uint),
];

const STRING_SOURCES: [(&str, Type); 8] = [
    ("string_to_string", Type::String),
    ("bool_to_string", Type::Bool),
    ("bytes_to_string", Type::Bytes),
    ("double_to_string", Type::Double),
    ("duration_to_string", Type::Duration),
    ("int64_to_string", Type::Int),
    ("timestamp_to_string", Type::Timestamp),
    ("uint64_to_string", Type::Uint),
];

/// The overloads of a conversion; the conversion from the type itself is the identity.
fn to(result: &Type, call: Implementation, sources: &[(&'static str, Type)]) -> Vec<Overload> {
    let overload = |(id, ty): &(&'static str, Type)| {
        let call = if ty == result { identity } else { call };
        Overload::global(id, [ty.clone()], result.clone(), call)
    };
    sources.iter().map(overload).collect()
}

fn cannot(value: &Value<'_>, to: &Type) -> Error {
    Error::new(format!("type conversion error from '{}' to '{}'", value.ty().name(), to.name()))
}

fn type_of<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Type(args[0].ty()))
}

fn to_bool<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match args[0].as_str()? {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        _ => Err(cannot(&args[0], &Type::Bool)),
    }
}

fn to_bytes<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bytes(args[0].as_str()?.as_bytes().into()))
}

fn to_double<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match &args[0] {
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::String(text) => {
            parse_double(text).map(Value::Double).ok_or_else(|| cannot(&args[0], &Type::Double))
        }
        _ => Err(Error::no_such_overload()),
    }
}

/// Parses a double as Go does: a too large number is an error, infinity only by name.
fn parse_double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let is_named = text.to_ascii_lowercase().contains("inf") || number.is_nan();
    (number.is_finite() || is_named).then_some(number)
}

fn to_duration<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match &args[0] {
        Value::String(text) => {
            Duration::parse(text).map(Value::Duration).ok_or_else(|| cannot(&args[0], &Type::Duration))
        }
        _ => Err(cannot(&args[0], &Type::Duration)),
    }
}

fn to_int<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    let overflow = || Error::new("integer overflow");
    match &args[0] {
        Value::Uint(number) => i64::try_from(*number).map(Value::Int).map_err(|_| overflow()),
        // The bounds have no exact double representation and are out of range.
        Value::Double(number) if *number > i64::MIN as f64 && *number < i64::MAX as f64 => {
            Ok(Value::Int(*number as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => go_digits(text)
            .and_then(|text| text.parse().ok())
            .map(Value::Int)
            .ok_or_else(|| cannot(&args[0], &Type::Int)),
        Value::Timestamp(time) => Ok(Value::Int(time.seconds())),
        Value::Duration(span) => Ok(Value::Int(span.nanos)),
        _ => Err(Error::no_such_overload()),
    }
}

/// The digits of an integer in Go's syntax.
fn go_digits(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

fn to_uint<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    let overflow = || Error::new("unsigned integer overflow");
    match &args[0] {
        Value::Int(number) => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(number) if *number >= 0.0 && *number < u64::MAX as f64 => {
            Ok(Value::Uint(*number as u64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map(Value::Uint).map_err(|_| cannot(&args[0], &Type::Uint))
        }
        _ => Err(cannot(&args[0], &Type::Uint)),
    }
}

fn to_string<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match &args[0] {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::string(text.to_owned())),
            Err(_) => Err(Error::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        value => Ok(Value::string(value.to_string())),
    }
}

fn to_timestamp<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match &args[0] {
        Value::Int(seconds) => Timestamp::new(*seconds, 0).map(Value::Timestamp),
        Value::String(text) => match Timestamp::parse(text) {
            Some(time) => time.map(Value::Timestamp),
            None => Err(cannot(&args[0], &Type::Timestamp)),
        },
        _ => Err(Error::no_such_overload()),
    }
}
