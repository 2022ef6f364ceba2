//! Equality and order of values, also across number types.

use std::cmp::Ordering;

use super::{List, Map, Value, list::same_keys};
use crate::declared::ListKind;

/// The nesting limit of comparisons: values nested deeper are never equal. No stored object is.
const MAX_DEPTH: usize = 300;

impl<'a> Value<'a> {
    /// Whether two values are equal by `==`. Values of different types are not.
    pub fn equals(&self, other: &Value<'a>) -> bool {
        self.equals_at(other, 0)
    }

    fn equals_at(&self, other: &Value<'a>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(two)) => one == two,
            (Value::String(one), Value::String(two)) => one == two,
            (Value::Bytes(one), Value::Bytes(two)) => one == two,
            (Value::Duration(one), Value::Duration(two)) => one == two,
            (Value::Timestamp(one), Value::Timestamp(two)) => one == two,
            (Value::List(one), Value::List(two)) => lists_equal(one, two, depth + 1),
            (Value::Map(one), Value::Map(two)) => maps_equal(one, two, depth + 1),
            (Value::Type(one), Value::Type(two)) => one.name() == two.name(),
            (Value::Opaque(one), Value::Opaque(two)) => one.equals(&**two),
            (Value::Optional(one), Value::Optional(two)) => match (one, two) {
                (Some(one), Some(two)) => one.equals_at(two, depth + 1),
                (one, two) => one.is_none() && two.is_none(),
            },
            _ => compare_numbers(self, other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values, if they are comparable.
    pub fn compare(&self, other: &Value<'a>) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(one), Value::Bool(two)) => Some(one.cmp(two)),
            (Value::String(one), Value::String(two)) => Some(one.cmp(two)),
            (Value::Bytes(one), Value::Bytes(two)) => Some(one.cmp(two)),
            (Value::Duration(one), Value::Duration(two)) => Some(one.cmp(two)),
            (Value::Timestamp(one), Value::Timestamp(two)) => Some(one.cmp(two)),
            _ => compare_numbers(self, other),
        }
    }

    /// Whether the value is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Uint(_) | Value::Double(_))
    }
}

fn compare_numbers(one: &Value<'_>, two: &Value<'_>) -> Option<Ordering> {
    match (one, two) {
        (Value::Int(one), Value::Int(two)) => Some(one.cmp(two)),
        (Value::Double(one), Value::Double(two)) => one.partial_cmp(two),
        (Value::Double(one), _) => compare_double(*one, whole(two)?),
        (_, Value::Double(two)) => compare_double(*two, whole(one)?).map(Ordering::reverse),
        _ => Some(whole(one)?.cmp(&whole(two)?)),
    }
}

fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(number) => Some((*number).into()),
        Value::Uint(number) => Some((*number).into()),
        _ => None,
    }
}

/// Compares a double with a 64-bit integer as doubles, which is imprecise for large numbers.
fn compare_double(double: f64, number: i128) -> Option<Ordering> {
    double.partial_cmp(&(number as f64))
}

fn lists_equal<'a>(one: &List<'a>, two: &List<'a>, depth: usize) -> bool {
    if one.len() != two.len() {
        return false;
    }
    match one.kind() {
        ListKind::Atomic => one.iter().zip(two.iter()).all(|pair| match pair {
            (Ok(one), Ok(two)) => one.equals_at(&two, depth),
            _ => false,
        }),
        ListKind::Set => matched(one, two, |one, two| one.equals_at(two, depth)),
        ListKind::Map(keys) => {
            matched(one, two, |one, two| same_keys(one, two, keys) && one.equals_at(two, depth))
        }
    }
}

/// Whether every item of a list has an equal item in the other, in any order.
fn matched<'a>(one: &List<'a>, two: &List<'a>, equal: impl Fn(&Value<'a>, &Value<'a>) -> bool) -> bool {
    let Ok(others) = two.to_vec() else { return false };
    one.iter().all(|item| item.is_ok_and(|item| others.iter().any(|other| equal(&item, other))))
}

fn maps_equal<'a>(one: &Map<'a>, two: &Map<'a>, depth: usize) -> bool {
    one.len() == two.len()
        && one.keys().iter().all(|key| match (one.get(key), two.get(key)) {
            (Some(Ok(one)), Some(Ok(two))) => one.equals_at(&two, depth),
            _ => false,
        })
}
