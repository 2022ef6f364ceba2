//! String functions.

use crate::{Call, Library, Overload, Result, Type, Value};

pub(super) fn library() -> Library {
    use Type::{Bool, String};
    Library::new()
        .function("contains", [Overload::member("contains_string", [String, String], Bool, contains)])
        .function("endsWith", [Overload::member("ends_with_string", [String, String], Bool, ends_with)])
        .function("startsWith", [Overload::member("starts_with_string", [String, String], Bool, starts_with)])
        .function(
            "matches",
            [
                Overload::global("matches", [String, String], Bool, matches).pattern(1),
                Overload::member("matches_string", [String, String], Bool, matches).pattern(1),
            ],
        )
}

fn contains<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(args[0].as_str()?.contains(args[1].as_str()?)))
}

fn ends_with<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(args[0].as_str()?.ends_with(args[1].as_str()?)))
}

fn starts_with<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(args[0].as_str()?.starts_with(args[1].as_str()?)))
}

fn matches<'a>(call: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    let regex = call.regex(args[1].as_str()?)?;
    Ok(Value::Bool(regex.is_match(args[0].as_str()?)))
}
