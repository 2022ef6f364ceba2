//! Arithmetic operators with overflow errors.

use super::a;
use crate::{Call, Error, Library, Overload, Result, Str, Type, Value, syntax::operators};

pub(super) fn library() -> Library {
    use Type::{Double, Duration, Int, Timestamp, Uint};
    let same = |id, ty: Type, call| Overload::global(id, [ty.clone(), ty.clone()], ty, call);
    Library::new()
        .function(operators::ADD, additions())
        .function(
            operators::SUBTRACT,
            [
                same("subtract_double", Double, subtract),
                same("subtract_duration_duration", Duration, subtract),
                same("subtract_int64", Int, subtract),
                Overload::global("subtract_timestamp_duration", [Timestamp, Duration], Timestamp, subtract),
                Overload::global("subtract_timestamp_timestamp", [Timestamp, Timestamp], Duration, subtract),
                same("subtract_uint64", Uint, subtract),
            ],
        )
        .function(
            operators::MULTIPLY,
            [
                same("multiply_double", Double, multiply),
                same("multiply_int64", Int, multiply),
                same("multiply_uint64", Uint, multiply),
            ],
        )
        .function(
            operators::DIVIDE,
            [
                same("divide_double", Double, divide),
                same("divide_int64", Int, divide),
                same("divide_uint64", Uint, divide),
            ],
        )
        .function(operators::MODULO, [same("modulo_int64", Int, modulo), same("modulo_uint64", Uint, modulo)])
        .function(
            operators::NEGATE,
            [
                Overload::global("negate_double", [Double], Double, negate),
                Overload::global("negate_int64", [Int], Int, negate),
            ],
        )
}

fn additions() -> Vec<Overload> {
    use Type::{Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let same = |id, ty: Type| Overload::global(id, [ty.clone(), ty.clone()], ty, add);
    vec![
        same("add_bytes", Bytes),
        same("add_double", Double),
        same("add_duration_duration", Duration),
        Overload::global("add_duration_timestamp", [Duration, Timestamp], Timestamp, add),
        Overload::global("add_timestamp_duration", [Timestamp, Duration], Timestamp, add),
        same("add_int64", Int),
        same("add_list", Type::list(a())),
        same("add_string", String),
        same("add_uint64", Uint),
    ]
}

fn int(result: Option<i64>) -> Result<Value<'static>> {
    result.map(Value::Int).ok_or_else(|| Error::new("integer overflow"))
}

fn uint(result: Option<u64>) -> Result<Value<'static>> {
    result.map(Value::Uint).ok_or_else(|| Error::new("unsigned integer overflow"))
}

fn add<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match (&args[0], &args[1]) {
        (Value::Int(one), Value::Int(two)) => int(one.checked_add(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_add(*two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one + two)),
        (Value::String(one), Value::String(two)) => Ok(Value::String(Str::from([&**one, &**two].concat()))),
        (Value::Bytes(one), Value::Bytes(two)) => Ok(Value::Bytes([&**one, &**two].concat().into())),
        (Value::List(one), Value::List(two)) => one.plus(two).map(Value::List),
        (Value::Duration(one), Value::Duration(two)) => one.plus(*two).map(Value::Duration),
        (Value::Duration(span), Value::Timestamp(time)) | (Value::Timestamp(time), Value::Duration(span)) => {
            time.plus(*span).map(Value::Timestamp)
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn subtract<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match (&args[0], &args[1]) {
        (Value::Int(one), Value::Int(two)) => int(one.checked_sub(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_sub(*two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one - two)),
        (Value::Duration(one), Value::Duration(two)) => one.minus(*two).map(Value::Duration),
        (Value::Timestamp(time), Value::Duration(span)) => time.minus(*span).map(Value::Timestamp),
        (Value::Timestamp(one), Value::Timestamp(two)) => one.since(*two).map(Value::Duration),
        _ => Err(Error::no_such_overload()),
    }
}

fn multiply<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match (&args[0], &args[1]) {
        (Value::Int(one), Value::Int(two)) => int(one.checked_mul(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_mul(*two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one * two)),
        _ => Err(Error::no_such_overload()),
    }
}

fn divide<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            Err(Error::new("division by zero"))
        }
        (Value::Int(one), Value::Int(two)) => int(one.checked_div(*two)),
        (Value::Uint(one), Value::Uint(two)) => Ok(Value::Uint(one / two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one / two)),
        _ => Err(Error::no_such_overload()),
    }
}

fn modulo<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            Err(Error::new("modulus by zero"))
        }
        (Value::Int(one), Value::Int(two)) => int(one.checked_rem(*two)),
        (Value::Uint(one), Value::Uint(two)) => Ok(Value::Uint(one % two)),
        _ => Err(Error::no_such_overload()),
    }
}

fn negate<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match &args[0] {
        Value::Int(number) => int(number.checked_neg()),
        Value::Double(number) => Ok(Value::Double(-number)),
        Value::Duration(span) => span.negated().map(Value::Duration),
        _ => Err(Error::no_such_overload()),
    }
}
