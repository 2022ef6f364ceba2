//! Printer columns and cells of tables.

use model::Object;
use model::object::{entries, text};
use serde_json::Value;

use super::age::since;

/// A printer column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// `name` for the column with the object's name, else empty.
    pub format: &'static str,
    /// The description.
    pub description: &'static str,
    /// Zero, or one if only wide output shows it.
    pub priority: i32,
}

impl Column {
    pub(super) const fn new(name: &'static str, kind: &'static str, description: &'static str) -> Self {
        Self { name, kind, format: "", description, priority: 0 }
    }

    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }
}

/// The name of the object.
pub(super) const NAME: Column =
    Column { format: "name", ..Column::new("Name", "string", "The name of the object.") };

/// The age of the object.
pub(super) const AGE: Column = Column::new("Age", "string", "The time since its creation.");

/// The columns of a built-in kind that declares none.
pub(super) const PLAIN: &[Column] = &[NAME, Column::new("Created At", "date", "The time of its creation.")];

pub(super) fn plain_cells(object: &Object, _now: jiff::Timestamp) -> Vec<Value> {
    vec![name(object), text(object, &["metadata", "creationTimestamp"]).into()]
}

pub(super) fn name(object: &Object) -> Value {
    text(object, &["metadata", "name"]).into()
}

pub(super) fn age(object: &Object, now: jiff::Timestamp) -> Value {
    let age = since(text(object, &["metadata", "creationTimestamp"]), now);
    age.unwrap_or_else(|| "<unknown>".to_owned()).into()
}

/// A text, or `<none>` if it is empty.
pub(super) fn or_none(text: String) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

/// Labels in selector notation, or `<none>`.
pub(super) fn labels(object: &Object, path: &[&str]) -> Value {
    let pairs = entries(object, path);
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    or_none(pairs.join(","))
}

/// The first three items of a list and the number of the others; `nothing` if it is empty.
pub(super) fn some_of(list: impl Iterator<Item = String>, nothing: &str) -> Value {
    const SHOWN: usize = 3;
    let mut shown: Vec<String> = list.collect();
    let more = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    match (shown.join(","), more) {
        (text, 0) if text.is_empty() => nothing.into(),
        (text, 0) => text.into(),
        (text, more) => format!("{text} + {more} more...").into(),
    }
}
