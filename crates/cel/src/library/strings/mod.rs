//! CEL's string extension, in Kubernetes' version: `'a,b'.split(',')`.

mod format;

use super::cost;
use crate::{
    Error, Library, Overload, Result, Type, Value,
    cost::{CallEstimate, EstimateCall, STRING_TRAVERSAL_FACTOR, SizeEstimate},
    syntax::{ExprKind, Literal},
};

/// Two overloads of a function: without and with a further integer argument.
fn pair(ids: [&'static str; 2], params: &[Type], result: Type, call: crate::Implementation) -> [Overload; 2] {
    let longer = params.iter().cloned().chain([Type::Int]);
    [
        Overload::member(ids[0], params.iter().cloned(), result.clone(), call),
        Overload::member(ids[1], longer, result, call),
    ]
}

/// The library.
pub fn library() -> Library {
    let (two, three) = ([Type::String, Type::String], [Type::String, Type::String, Type::String]);
    let library = Library::new()
        .function(
            "charAt",
            [Overload::member("string_char_at_int", [Type::String, Type::Int], Type::String, |_, args| {
                char_at(args[0].as_str()?, args[1].as_int()?)
            })],
        )
        .function(
            "indexOf",
            pair(["string_index_of_string", "string_index_of_string_int"], &two, Type::Int, |_, args| {
                index_of(args[0].as_str()?, args[1].as_str()?, optional_int(args, 2)?.unwrap_or(0))
            }),
        )
        .function(
            "lastIndexOf",
            pair(
                ["string_last_index_of_string", "string_last_index_of_string_int"],
                &two,
                Type::Int,
                |_, args| last_index_of(args[0].as_str()?, args[1].as_str()?, optional_int(args, 2)?),
            ),
        )
        .function(
            "replace",
            pair(
                ["string_replace_string_string", "string_replace_string_string_int"],
                &three,
                Type::String,
                |_, args| {
                    let limit = limit(optional_int(args, 3)?);
                    let (old, new) = (args[1].as_str()?, args[2].as_str()?);
                    replace(args[0].as_str()?, old, new, limit).map(Value::from)
                },
            ),
        )
        .function(
            "split",
            pair(
                ["string_split_string", "string_split_string_int"],
                &two,
                Type::list(Type::String),
                |_, args| Ok(split(args[0].as_str()?, args[1].as_str()?, limit(optional_int(args, 2)?))),
            ),
        );
    costs(format::add(joins(changes(library))))
}

/// Functions that return a part or a transformation of a string.
fn changes(library: Library) -> Library {
    let text = [Type::String];
    library
        .function(
            "substring",
            pair(
                ["string_substring_int", "string_substring_int_int"],
                &[Type::String, Type::Int],
                Type::String,
                |_, args| substring(args[0].as_str()?, args[1].as_int()?, optional_int(args, 2)?),
            ),
        )
        .function(
            "lowerAscii",
            [Overload::member("string_lower_ascii", text.clone(), Type::String, |_, args| {
                Ok(args[0].as_str()?.to_ascii_lowercase().into())
            })],
        )
        .function(
            "upperAscii",
            [Overload::member("string_upper_ascii", text.clone(), Type::String, |_, args| {
                Ok(args[0].as_str()?.to_ascii_uppercase().into())
            })],
        )
        .function(
            "trim",
            [Overload::member("string_trim", text.clone(), Type::String, |_, args| {
                Ok(args[0].as_str()?.trim().to_owned().into())
            })],
        )
        .function(
            "strings.quote",
            [Overload::global("strings_quote", text, Type::String, |_, args| {
                Ok(quote(args[0].as_str()?).into())
            })],
        )
}

fn joins(library: Library) -> Library {
    let texts = || Type::list(Type::String);
    library.function(
        "join",
        [
            Overload::member("list_join", [texts()], Type::String, |_, args| join(&args[0], "")),
            Overload::member("list_join_string", [texts(), Type::String], Type::String, |_, args| {
                join(&args[0], args[1].as_str()?)
            }),
        ],
    )
}

/// Kubernetes' costs of these functions. `charAt`, `format` and `strings.quote` have the default cost.
fn costs(mut library: Library) -> Library {
    for function in ["lowerAscii", "upperAscii", "substring", "trim"] {
        library = library.estimates(function, cost::receiver_kept).costs(function, cost::argument_run);
    }
    for function in ["indexOf", "lastIndexOf"] {
        library = library.estimates(function, cost::search).costs(function, cost::search_run);
    }
    library
        .estimates("replace", estimate_replace)
        .costs("replace", cost::argument_twice_run)
        .estimates("split", estimate_split)
        .costs("split", cost::argument_twice_run)
        .estimates("join", estimate_join)
        .costs("join", |call| Some(cost::traversal(call.result.cost_size(), 2.0)))
}

fn estimate_replace(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let [old, new, ..] = call.args else { return None };
    let (size, old, new) = (call.size(call.target?), call.size(old), call.size(new));
    // The number of replacements, and the number of characters that stay.
    let (max_count, max_kept) = match old.min {
        0 => (size.max.saturating_add(1), size.max),
        least if new.max <= least => (0, size.max),
        least => (size.max.div_ceil(least), 0),
    };
    let (min_count, min_kept) = match old.max {
        0 => (size.min.saturating_add(1), size.min),
        most if most <= new.min => (0, size.min),
        most => (size.min.div_ceil(most), 0),
    };
    let count = SizeEstimate { min: min_count, max: max_count };
    let result = count.times(new).plus(SizeEstimate { min: min_kept, max: max_kept });
    Some(CallEstimate::sized(size.cost(2.0 * STRING_TRAVERSAL_FACTOR), result))
}

fn estimate_split(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.target?);
    let limit = call.args.get(1).and_then(|limit| match &limit.expr?.kind {
        ExprKind::Literal(Literal::Int(limit)) => Some(*limit),
        _ => None,
    });
    // A negative limit means none, and is estimated as the maximum.
    let max = limit.map_or(size.max, i64::cast_unsigned);
    Some(CallEstimate::sized(size.cost(2.0 * STRING_TRAVERSAL_FACTOR), SizeEstimate { min: 0, max }))
}

fn estimate_join(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let target = call.target?;
    let count = call.size(target);
    let items = call.items(target).map_or(SizeEstimate::fixed(0), |items| count.times(call.size(&items)));
    let separators = call.args.first().map_or(SizeEstimate::fixed(0), |separator| {
        let between = SizeEstimate { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
        call.size(separator).times(between)
    });
    let size = items.plus(separators);
    Some(CallEstimate::sized(size.cost(STRING_TRAVERSAL_FACTOR), size))
}

/// The maximum length of a string that a function creates.
const MAX_MADE_BYTES: usize = 64 << 20;

fn too_long() -> Error {
    Error::new("text is too long")
}

fn optional_int(args: &[Value<'_>], index: usize) -> Result<Option<i64>> {
    args.get(index).map(Value::as_int).transpose()
}

/// A limit; a negative one means none.
fn limit(number: Option<i64>) -> usize {
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX)
}

fn out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

/// The byte index of a character index; the end of the string for the index behind the last character.
fn byte_index(text: &str, index: i64) -> Result<usize> {
    let count = usize::try_from(index).map_err(|_| out_of_range(index))?;
    let mut places = text.char_indices().map(|(place, _)| place).chain([text.len()]);
    places.nth(count).ok_or_else(|| out_of_range(index))
}

fn char_at<'a>(text: &str, index: i64) -> Result<Value<'a>> {
    let rest = &text[byte_index(text, index)?..];
    Ok(rest.chars().next().map_or(String::new(), String::from).into())
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Result<Value<'a>> {
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let first = byte_index(text, start)?;
    let last = end.map_or(Ok(text.len()), |end| byte_index(text, end))?;
    Ok(text[first..last].to_owned().into())
}

fn index_of<'a>(text: &str, part: &str, offset: i64) -> Result<Value<'a>> {
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let Ok(start) = byte_index(text, offset) else { return Ok(Value::Int(-1)) };
    Ok(place(text, text[start..].find(part).map(|found| start + found)))
}

fn last_index_of<'a>(text: &str, part: &str, offset: Option<i64>) -> Result<Value<'a>> {
    let len = count(text);
    if part.is_empty() {
        return Ok(Value::Int(offset.unwrap_or(len)));
    }
    let Some(offset) = offset else { return Ok(place(text, text.rfind(part))) };
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    if offset >= len {
        return Ok(Value::Int(-1));
    }
    // A match may end behind the offset, as long as it starts at the offset or before.
    let end = byte_index(text, (offset + count(part)).min(len))?;
    Ok(place(text, text[..end].rfind(part)))
}

/// The character index of a byte index.
fn place<'a>(text: &str, byte: Option<usize>) -> Value<'a> {
    Value::Int(byte.map_or(-1, |byte| count(&text[..byte])))
}

fn count(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn replace(text: &str, old: &str, new: &str, limit: usize) -> Result<String> {
    let times = text.matches(old).take(limit).count();
    match new.len().checked_mul(times).and_then(|made| made.checked_add(text.len())) {
        Some(made) if made <= MAX_MADE_BYTES => Ok(text.replacen(old, new, times)),
        _ => Err(too_long()),
    }
}

fn split<'a>(text: &str, separator: &str, limit: usize) -> Value<'a> {
    let owned = |part: &str| Value::from(part.to_owned());
    Value::list(match separator {
        _ if limit == 0 => Vec::new(),
        "" => {
            let mut ends =
                text.char_indices().skip(1).map(|(index, _)| index).take(limit - 1).collect::<Vec<_>>();
            if text.is_empty() {
                return Value::list(Vec::new());
            }
            ends.push(text.len());
            let starts = std::iter::once(0).chain(ends.iter().copied());
            starts.zip(ends.iter()).map(|(start, end)| owned(&text[start..*end])).collect()
        }
        _ => text.splitn(limit, separator).map(owned).collect(),
    })
}

fn join<'a>(list: &Value<'a>, separator: &str) -> Result<Value<'a>> {
    let mut joined = String::new();
    for (index, item) in list.as_list()?.iter().enumerate() {
        let item = item?;
        let Value::String(text) = &item else {
            return Err(Error::new(format!("join: invalid input: {item}")));
        };
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
        if joined.len() > MAX_MADE_BYTES {
            return Err(too_long());
        }
    }
    Ok(joined.into())
}

/// A string literal of the language.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
