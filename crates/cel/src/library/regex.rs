//! The regex library: `'abc 123'.find('[0-9]+')`.

use super::cost;
use crate::{
    Call, Error, Library, Overload, Result, Type, Value,
    cost::{CallEstimate, SizeEstimate},
};

/// The library.
pub fn library() -> Library {
    let texts = || Type::list(Type::String);
    let library = Library::new()
        .function(
            "find",
            [Overload::member(
                "string_find_string",
                [Type::String, Type::String],
                Type::String,
                |call, args| {
                    let regex = compiled(call, &args[1])?;
                    Ok(regex.find(args[0].as_str()?).map_or("", |found| found.as_str()).to_owned().into())
                },
            )
            .pattern(1)],
        )
        .function(
            "findAll",
            [
                Overload::member(
                    "string_find_all_string",
                    [Type::String, Type::String],
                    texts(),
                    |call, args| find_all(call, args, usize::MAX),
                )
                .pattern(1),
                Overload::member(
                    "string_find_all_string_int",
                    [Type::String, Type::String, Type::Int],
                    texts(),
                    |call, args| {
                        // A negative limit means all matches.
                        let limit = usize::try_from(args[2].as_int()?).unwrap_or(usize::MAX);
                        find_all(call, args, limit)
                    },
                )
                .pattern(1),
            ],
        );
    ["find", "findAll"].into_iter().fold(library, |library, function| {
        library.estimates(function, estimate).costs(function, |call| {
            Some(cost::matching_run(call.args.first()?.cost_size(), call.args.get(1)?.cost_size()))
        })
    })
}

fn compiled<'c>(call: &Call<'c>, pattern: &Value<'_>) -> Result<std::borrow::Cow<'c, regex::Regex>> {
    call.regex(pattern.as_str()?).map_err(|error| Error::new(format!("Illegal regex: {error}")))
}

fn find_all<'a>(call: &Call<'_>, args: &[Value<'a>], limit: usize) -> Result<Value<'a>> {
    let regex = compiled(call, &args[1])?;
    let found = regex.find_iter(args[0].as_str()?).take(limit);
    Ok(Value::list(found.map(|found| found.as_str().to_owned().into()).collect()))
}

fn estimate(call: &crate::cost::EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.target?);
    let cost = cost::matching(size, call.size(call.args.first()?));
    Some(CallEstimate::sized(cost, SizeEstimate { min: 0, max: size.max }))
}
