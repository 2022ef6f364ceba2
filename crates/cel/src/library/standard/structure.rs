//! Logical operators, indexing, membership and sizes.

use std::sync::Arc;

use super::{a, b, special};
use crate::{
    Call, Error, Key, Library, Map, Overload, Result, Type, Value,
    syntax::{MAP_INSERT, operators},
};

pub(super) fn library() -> Library {
    use Type::{Bool, Int};
    let list = || Type::list(a());
    let map = || Type::map(a(), b());
    Library::new()
        .function(operators::CONDITIONAL, [Overload::global("conditional", [Bool, a(), a()], a(), special)])
        .function(operators::AND, [Overload::global("logical_and", [Bool, Bool], Bool, special)])
        .function(operators::OR, [Overload::global("logical_or", [Bool, Bool], Bool, special)])
        .function(operators::NOT, [Overload::global("logical_not", [Bool], Bool, not)])
        .function(
            operators::NOT_STRICTLY_FALSE,
            [Overload::global("not_strictly_false", [Bool], Bool, super::identity)],
        )
        .function(operators::EQUALS, [Overload::global("equals", [a(), a()], Bool, equals)])
        .function(operators::NOT_EQUALS, [Overload::global("not_equals", [a(), a()], Bool, not_equals)])
        .function(
            operators::INDEX,
            [
                Overload::global("index_list", [list(), Int], a(), special),
                Overload::global("index_map", [map(), a()], b(), special),
            ],
        )
        .function(
            operators::IN,
            [
                Overload::global("in_list", [a(), list()], Bool, in_list),
                Overload::global("in_map", [a(), map()], Bool, in_map),
            ],
        )
        .function(
            "size",
            [
                Overload::global("size_bytes", [Type::Bytes], Int, size),
                Overload::member("bytes_size", [Type::Bytes], Int, size),
                Overload::global("size_list", [list()], Int, size),
                Overload::member("list_size", [list()], Int, size),
                Overload::global("size_map", [map()], Int, size),
                Overload::member("map_size", [map()], Int, size),
                Overload::global("size_string", [Type::String], Int, size),
                Overload::member("string_size", [Type::String], Int, size),
            ],
        )
        .function(
            MAP_INSERT,
            [
                Overload::global("@mapInsert_map_key_value", [map(), a(), b()], map(), insert),
                Overload::global("@mapInsert_map_map", [map(), map()], map(), insert_all),
            ],
        )
}

fn not<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(!args[0].as_bool()?))
}

fn equals<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(args[0].equals(&args[1])))
}

fn not_equals<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(!args[0].equals(&args[1])))
}

fn in_list<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    for item in args[1].as_list()?.iter() {
        if item?.equals(&args[0]) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn in_map<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(args[1].as_map()?.get(&args[0]).is_some()))
}

fn size<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Int(i64::try_from(args[0].cost_size()).unwrap_or(i64::MAX)))
}

fn insert<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    with_entries(&args[0], vec![(args[1].clone(), args[2].clone())])
}

fn insert_all<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    with_entries(&args[0], args[1].as_map()?.entries()?)
}

fn with_entries<'a>(map: &Value<'a>, more: Vec<(Value<'a>, Value<'a>)>) -> Result<Value<'a>> {
    let mut map = match map.as_map()? {
        Map::Owned(entries) => Arc::clone(entries),
        _ => Arc::default(),
    };
    let entries = Arc::make_mut(&mut map);
    for (key, value) in more {
        insert_entry(entries, &key, value)?;
    }
    Ok(Value::Map(Map::Owned(map)))
}

/// Inserts an entry into a map under construction; a duplicate key is an error.
pub(crate) fn insert_entry<'a>(
    entries: &mut std::collections::BTreeMap<Key<'a>, Value<'a>>,
    key: &Value<'a>,
    value: Value<'a>,
) -> Result<()> {
    let Some(known) = Key::from_value(key) else {
        return Err(Error::new(format!("unsupported key type: {}", key.ty().name())));
    };
    match entries.insert(known, value) {
        Some(_) => Err(Error::new(format!("insert failed: key {key} already exists"))),
        None => Ok(()),
    }
}
