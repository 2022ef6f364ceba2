//! Maps: JSON objects, typed objects, and maps created by expressions.

use std::{cmp::Ordering, collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value as Json;

use super::Str;
use crate::{Declared, Error, Result, Value, types::ObjectType};

/// A map, or an object, which is a map with known keys.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// A JSON object, whose values are converted on access.
    Json {
        /// The JSON entries.
        entries: &'a serde_json::Map<String, Json>,
        /// The declaration of the map.
        declared: &'a Declared,
    },
    /// A typed object; expressions see only declared fields.
    Object {
        /// The JSON entries.
        entries: &'a serde_json::Map<String, Json>,
        /// The type.
        object: &'a ObjectType,
    },
    /// An object literal of a named type.
    Made {
        /// The name of the type.
        name: &'a str,
        /// The fields.
        entries: Arc<BTreeMap<Key<'a>, Value<'a>>>,
    },
    /// A map created by the expression.
    Owned(Arc<BTreeMap<Key<'a>, Value<'a>>>),
}

/// A map key. Equal numbers of different types are the same key.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// Text.
    String(Str<'a>),
}

impl<'a> Key<'a> {
    /// Converts a value to a key, if its type allows it.
    pub fn from_value(value: &Value<'a>) -> Option<Key<'a>> {
        match value {
            Value::Bool(value) => Some(Key::Bool(*value)),
            Value::Int(number) => Some(Key::Int(*number)),
            Value::Uint(number) => Some(Key::Uint(*number)),
            Value::Double(number) => from_double(*number),
            Value::String(text) => Some(Key::String(text.clone())),
            _ => None,
        }
    }

    /// Converts the key to a value.
    pub fn to_value(&self) -> Value<'a> {
        match self {
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(number) => Value::Int(*number),
            Key::Uint(number) => Value::Uint(*number),
            Key::String(text) => Value::String(text.clone()),
        }
    }

    fn number(&self) -> Option<i128> {
        match self {
            Key::Int(number) => Some((*number).into()),
            Key::Uint(number) => Some((*number).into()),
            _ => None,
        }
    }
}

/// The integer key for an integral double.
fn from_double(number: f64) -> Option<Key<'static>> {
    let is_whole = number.fract() == 0.0;
    if is_whole && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        return Some(Key::Int(number as i64));
    }
    (is_whole && (0.0..18_446_744_073_709_551_616.0).contains(&number)).then_some(Key::Uint(number as u64))
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::String(one), Key::String(two)) => one.cmp(two),
            (Key::Bool(one), Key::Bool(two)) => one.cmp(two),
            (Key::Bool(_), _) => Ordering::Less,
            (_, Key::Bool(_)) => Ordering::Greater,
            // Strings sort last.
            _ => match (self.number(), other.number()) {
                (Some(one), Some(two)) => one.cmp(&two),
                (one, two) => two.cmp(&one),
            },
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

impl fmt::Display for Key<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Bool(value) => value.fmt(formatter),
            Key::Int(number) => number.fmt(formatter),
            Key::Uint(number) => number.fmt(formatter),
            Key::String(text) => text.fmt(formatter),
        }
    }
}

impl<'a> Map<'a> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Json { entries, .. } | Map::Object { entries, .. } => entries.len(),
            Map::Owned(entries) | Map::Made { entries, .. } => entries.len(),
        }
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &Value<'a>) -> Option<Result<Value<'a>>> {
        match (self, key) {
            (Map::Owned(entries) | Map::Made { entries, .. }, _) => {
                entries.get(&Key::from_value(key)?).cloned().map(Ok)
            }
            (_, Value::String(text)) => self.field(text),
            _ => None,
        }
    }

    /// The value of a string key or field.
    pub fn field(&self, name: &str) -> Option<Result<Value<'a>>> {
        match self {
            Map::Json { entries, declared } => {
                entries.get(name).map(|value| Value::from_json(value, declared.item()))
            }
            Map::Object { entries, object } => {
                let field = object.fields.get(name)?;
                let value = entries.get(&*field.json_name).filter(|value| !value.is_null())?;
                Some(Value::from_json(value, &field.declared))
            }
            Map::Owned(entries) | Map::Made { entries, .. } => {
                entries.get(&Key::String(Str::Borrowed(name))).cloned().map(Ok)
            }
        }
    }

    /// The value of a key, or the error for a missing key.
    pub fn require(&self, key: &Value<'a>) -> Result<Value<'a>> {
        self.get(key).unwrap_or_else(|| Err(Error::no_such_key(key)))
    }

    /// A raw JSON field by its JSON name.
    pub(crate) fn json_field(&self, name: &str) -> Option<&'a Json> {
        match self {
            Map::Json { entries, .. } | Map::Object { entries, .. } => entries.get(name),
            Map::Owned(_) | Map::Made { .. } => None,
        }
    }

    /// The keys in order.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Json { entries, .. } | Map::Object { entries, .. } => {
                entries.keys().map(|key| Value::String(Str::Borrowed(key))).collect()
            }
            Map::Owned(entries) | Map::Made { entries, .. } => entries.keys().map(Key::to_value).collect(),
        }
    }

    /// The entries in key order.
    pub fn entries(&self) -> Result<Vec<(Value<'a>, Value<'a>)>> {
        let value = |key: Value<'a>| self.require(&key).map(|value| (key, value));
        self.keys().into_iter().map(value).collect()
    }
}
