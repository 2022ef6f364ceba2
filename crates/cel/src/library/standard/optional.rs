//! Optional values.

use super::special;
use crate::{Call, Error, Library, Overload, Result, Type, Value, syntax::operators};

pub(super) fn library() -> Library {
    use Type::{Bool, Dyn, Int, String};
    let (k, v) = (|| Type::Param("K"), || Type::Param("V"));
    let opt = || Type::optional(v());
    let list = || Type::list(v());
    let map = || Type::map(k(), v());
    let optionals = || Type::list(opt());
    Library::new()
        .function("optional.of", [Overload::global("optional_of", [v()], opt(), of)])
        .function(
            "optional.ofNonZeroValue",
            [Overload::global("optional_ofNonZeroValue", [v()], opt(), of_non_zero)],
        )
        .function("optional.none", [Overload::global("optional_none", [], opt(), none)])
        .function("value", [Overload::member("optional_value", [opt()], v(), value)])
        .function("hasValue", [Overload::member("optional_hasValue", [opt()], Bool, has_value)])
        .function("or", [Overload::member("optional_or_optional", [opt(), opt()], opt(), special)])
        .function("orValue", [Overload::member("optional_orValue_value", [opt(), v()], v(), special)])
        .function(
            operators::OPT_SELECT,
            [Overload::global("select_optional_field", [Dyn, String], opt(), special)],
        )
        .function(
            operators::OPT_INDEX,
            [
                Overload::global("list_optindex_optional_int", [list(), Int], opt(), special),
                Overload::global(
                    "optional_list_optindex_optional_int",
                    [Type::optional(list()), Int],
                    opt(),
                    special,
                ),
                Overload::global("map_optindex_optional_value", [map(), k()], opt(), special),
                Overload::global(
                    "optional_map_optindex_optional_value",
                    [Type::optional(map()), k()],
                    opt(),
                    special,
                ),
            ],
        )
        .function(
            operators::INDEX,
            [
                Overload::global("optional_list_index_int", [Type::optional(list()), Int], opt(), special),
                Overload::global("optional_map_index_value", [Type::optional(map()), k()], opt(), special),
            ],
        )
        .function("first", [Overload::member("list_first", [list()], opt(), first)])
        .function("last", [Overload::member("list_last", [list()], opt(), last)])
        .function("optional.unwrap", [Overload::global("optional_unwrap", [optionals()], list(), unwrap)])
        .function("unwrapOpt", [Overload::member("optional_unwrapOpt", [optionals()], list(), unwrap)])
}

fn of<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::some(args[0].clone()))
}

fn of_non_zero<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(if args[0].is_zero() { Value::Optional(None) } else { Value::some(args[0].clone()) })
}

fn none<'a>(_: &Call<'_>, _: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Optional(None))
}

fn value<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match &args[0] {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        Value::Optional(None) => Err(Error::new("optional.none() dereference")),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_value<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match &args[0] {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

fn item<'a>(item: Option<Result<Value<'a>>>) -> Result<Value<'a>> {
    Ok(item.transpose()?.map_or(Value::Optional(None), Value::some))
}

fn first<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    item(args[0].as_list()?.get(0))
}

fn last<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    let list = args[0].as_list()?;
    item(list.len().checked_sub(1).and_then(|index| list.get(index)))
}

fn unwrap<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    let mut values = Vec::new();
    for item in args[0].as_list()?.iter() {
        match item? {
            Value::Optional(value) => values.extend(value.map(|value| (*value).clone())),
            other => return Err(Error::new(format!("value {other} is not optional"))),
        }
    }
    Ok(Value::list(values))
}
