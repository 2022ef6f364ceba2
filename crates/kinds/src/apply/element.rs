//! An element of a field path, with Kubernetes' sort order and its two notations.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use model::error::quote;
use serde_json::Value;

use super::encoding::{push_text, push_value};

/// Selects a field of a struct, an entry of a map or an item of a list.
#[derive(Clone, Debug)]
pub enum Element<'a> {
    /// The name of a field, or the key of an entry.
    Field(Cow<'a, str>),
    /// The values of the fields that identify an item of a list, sorted by name.
    Key(Key<'a>),
    /// The value of an item of a set.
    Value(Cow<'a, Value>),
    /// The position of an item.
    Index(i64),
}

/// Names and values of the fields that identify an item.
pub type Key<'a> = Box<[(Cow<'a, str>, Cow<'a, Value>)]>;

/// The text is not a path element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoElement;

impl<'a> Element<'a> {
    /// A field by its name.
    pub fn field(name: &'a str) -> Self {
        Self::Field(Cow::Borrowed(name))
    }

    /// Parses the notation of `FieldsV1`; `None` for an unknown kind of element, which is ignored.
    ///
    /// # Errors
    /// The text is not in that notation.
    pub fn parse(text: &'a str) -> Result<Option<Self>, NoElement> {
        let (kind, rest) = text.split_at_checked(2).ok_or(NoElement)?;
        if !kind.ends_with(':') {
            return Err(NoElement);
        }
        match kind {
            "f:" => Ok(Some(Self::field(rest))),
            "v:" => serde_json::from_str(rest).map(|value| Some(Self::Value(Cow::Owned(value)))),
            "k:" => {
                let key: Result<serde_json::Map<String, Value>, _> = serde_json::from_str(rest);
                let owned = |(name, value)| (Cow::Owned(name), Cow::Owned(value));
                key.map(|key| Some(Self::Key(key.into_iter().map(owned).collect())))
            }
            "i:" => return rest.parse().map(|index| Some(Self::Index(index))).map_err(|_| NoElement),
            _ => return Ok(None),
        }
        .map_err(|_| NoElement)
    }

    /// Writes the notation of `FieldsV1`.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(key) => {
                out.push_str("k:{");
                for (at, (name, value)) in key.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    push_text(out, name);
                    out.push(':');
                    push_value(out, value);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                push_value(out, value);
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for Element<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let pairs = a.iter().zip(b.iter());
                let orders = pairs.map(|((a, x), (b, y))| a.cmp(b).then_with(|| compare_values(x, y)));
                orders.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element<'_> {}

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(key) => {
                let parts: Vec<String> =
                    key.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(f, "[{}]", parts.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value in the text form of a path.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect()
        }
        other => other.to_string(),
    }
}

/// Compares values of any types. Numbers are compared as numbers, whether integer or float.
pub(super) fn compare_values(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => x.as_f64().unwrap_or_default().total_cmp(&y.as_f64().unwrap_or_default()),
        },
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::Array(x), Value::Array(y)) => {
            let pairs = x.iter().zip(y);
            let first = pairs.map(|(x, y)| compare_values(x, y)).find(|order| order.is_ne());
            first.unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        (Value::Object(x), Value::Object(y)) => {
            let pairs = x.iter().zip(y);
            let orders = pairs.map(|((k, x), (l, y))| k.cmp(l).then_with(|| compare_values(x, y)));
            orders.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Whether two values are equal for apply.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    compare_values(a, b).is_eq()
}
