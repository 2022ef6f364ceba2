//! Kubernetes' list library: sort order, sums, minimum and maximum, item positions.

use std::cmp::Ordering;

use super::cost;
use crate::{Duration, Error, Implementation, Library, Overload, Result, Type, Value};

/// Ordered types, with the overload ids of `isSorted`, `min` and `max`.
fn ordered() -> [(Type, [&'static str; 3]); 8] {
    [
        (Type::Int, ["list_int_is_sorted_bool", "list_int_min_int", "list_int_max_int"]),
        (Type::Uint, ["list_uint_is_sorted_bool", "list_uint_min_uint", "list_uint_max_uint"]),
        (Type::Double, ["list_double_is_sorted_bool", "list_double_min_double", "list_double_max_double"]),
        (Type::Bool, ["list_bool_is_sorted_bool", "list_bool_min_bool", "list_bool_max_bool"]),
        (
            Type::Duration,
            ["list_duration_is_sorted_bool", "list_duration_min_duration", "list_duration_max_duration"],
        ),
        (
            Type::Timestamp,
            ["list_timestamp_is_sorted_bool", "list_timestamp_min_timestamp", "list_timestamp_max_timestamp"],
        ),
        (Type::String, ["list_string_is_sorted_bool", "list_string_min_string", "list_string_max_string"]),
        (Type::Bytes, ["list_bytes_is_sorted_bool", "list_bytes_min_bytes", "list_bytes_max_bytes"]),
    ]
}

/// The library.
pub fn library() -> Library {
    let of = |index: usize, call: Implementation| {
        ordered().into_iter().map(move |(item, ids)| {
            let result = if index == 0 { Type::Bool } else { item.clone() };
            Overload::member(ids[index], [Type::list(item)], result, call)
        })
    };
    let a = || Type::Param("A");
    let library = Library::new()
        .function("isSorted", of(0, |_, args| is_sorted(&args[0])))
        .function("min", of(1, |_, args| extreme(&args[0], "min", Ordering::Greater)))
        .function("max", of(2, |_, args| extreme(&args[0], "max", Ordering::Less)))
        .function("sum", sums())
        .function(
            "indexOf",
            [Overload::member("list_a_index_of_int", [Type::list(a()), a()], Type::Int, |_, args| {
                index_of(args, |places| places.next())
            })],
        )
        .function(
            "lastIndexOf",
            [Overload::member("list_a_last_index_of_int", [Type::list(a()), a()], Type::Int, |_, args| {
                index_of(args, |places| places.last())
            })],
        );
    ["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"]
        .into_iter()
        .fold(library, |library, function| {
            library.estimates(function, cost::search).costs(function, cost::search_run)
        })
}

fn sums() -> [Overload; 4] {
    let of = |id, item: Type, call| Overload::member(id, [Type::list(item.clone())], item, call);
    [
        of("list_int_sum_int", Type::Int, |_, args| sum(&args[0], Value::Int(0))),
        of("list_uint_sum_uint", Type::Uint, |_, args| sum(&args[0], Value::Uint(0))),
        of("list_double_sum_double", Type::Double, |_, args| sum(&args[0], Value::Double(0.0))),
        of("list_duration_sum_duration", Type::Duration, |_, args| {
            sum(&args[0], Value::Duration(Duration { nanos: 0 }))
        }),
    ]
}

fn sum<'a>(list: &Value<'a>, zero: Value<'a>) -> Result<Value<'a>> {
    list.as_list()?.iter().try_fold(zero, |sum, item| plus(&sum, &item?))
}

fn plus<'a>(sum: &Value<'a>, item: &Value<'a>) -> Result<Value<'a>> {
    match (sum, item) {
        (Value::Int(sum), Value::Int(item)) => {
            sum.checked_add(*item).map(Value::Int).ok_or_else(|| Error::new("integer overflow"))
        }
        (Value::Uint(sum), Value::Uint(item)) => {
            sum.checked_add(*item).map(Value::Uint).ok_or_else(|| Error::new("unsigned integer overflow"))
        }
        (Value::Double(sum), Value::Double(item)) => Ok(Value::Double(sum + item)),
        (Value::Duration(sum), Value::Duration(item)) => sum.plus(*item).map(Value::Duration),
        _ => Err(Error::no_such_overload()),
    }
}

fn is_sorted<'a>(list: &Value<'a>) -> Result<Value<'a>> {
    let items = list.as_list()?.to_vec()?;
    Ok(items.windows(2).all(|pair| pair[0].compare(&pair[1]) != Some(Ordering::Greater)).into())
}

/// The minimum or maximum: an item replaces the result if the result compares to it as `replaced_if`.
fn extreme<'a>(list: &Value<'a>, name: &str, replaced_if: Ordering) -> Result<Value<'a>> {
    let mut found: Option<Value<'a>> = None;
    for item in list.as_list()?.iter() {
        let item = item?;
        if found.as_ref().is_none_or(|found| found.compare(&item) == Some(replaced_if)) {
            found = Some(item);
        }
    }
    found.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn index_of<'a>(
    args: &[Value<'a>],
    choose: impl FnOnce(&mut dyn Iterator<Item = usize>) -> Option<usize>,
) -> Result<Value<'a>> {
    let items = args[0].as_list()?.to_vec()?;
    let mut places = (0..items.len()).filter(|index| items[*index].equals(&args[1]));
    let place = choose(&mut places).and_then(|index| i64::try_from(index).ok());
    Ok(Value::Int(place.unwrap_or(-1)))
}
