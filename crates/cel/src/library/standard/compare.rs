//! The comparison operators.

use std::cmp::Ordering;

use crate::{Call, Error, Implementation, Library, Overload, Result, Type, Value, syntax::operators};

pub(super) fn library() -> Library {
    Library::new()
        .function(operators::LESS, overloads("less", less))
        .function(operators::LESS_EQUALS, overloads("less_equals", less_equals))
        .function(operators::GREATER, overloads("greater", greater))
        .function(operators::GREATER_EQUALS, overloads("greater_equals", greater_equals))
}

/// The overload ids of an operator, in the order of the compared types.
fn names(operator: &str) -> [&'static str; 14] {
    macro_rules! of {
        ($($suffix:literal),*) => {
            match operator {
                "less" => [$(concat!("less_", $suffix)),*],
                "less_equals" => [$(concat!("less_equals_", $suffix)),*],
                "greater" => [$(concat!("greater_", $suffix)),*],
                _ => [$(concat!("greater_equals_", $suffix)),*],
            }
        };
    }
    of!(
        "bool",
        "int64",
        "int64_double",
        "int64_uint64",
        "uint64",
        "uint64_double",
        "uint64_int64",
        "double",
        "double_int64",
        "double_uint64",
        "string",
        "bytes",
        "timestamp",
        "duration"
    )
}

fn overloads(operator: &str, call: Implementation) -> Vec<Overload> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let pairs = [
        [Bool, Bool],
        [Int, Int],
        [Int, Double],
        [Int, Uint],
        [Uint, Uint],
        [Uint, Double],
        [Uint, Int],
        [Double, Double],
        [Double, Int],
        [Double, Uint],
        [String, String],
        [Bytes, Bytes],
        [Timestamp, Timestamp],
        [Duration, Duration],
    ];
    let named = names(operator).into_iter().zip(pairs);
    named.map(|(id, pair)| Overload::global(id, pair, Bool, call)).collect()
}

fn ordering(args: &[Value<'_>]) -> Result<Ordering> {
    let not_a_number = || Error::new("NaN values cannot be ordered");
    args[0].compare(&args[1]).ok_or_else(not_a_number)
}

fn less<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(ordering(args)?.is_lt()))
}

fn less_equals<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(ordering(args)?.is_le()))
}

fn greater<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(ordering(args)?.is_gt()))
}

fn greater_equals<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(ordering(args)?.is_ge()))
}
