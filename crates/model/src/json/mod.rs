//! Request bodies into values: JSON and YAML, with duplicate keys.
//!
//! The limits are here because a body is untrusted input.

mod fault;
mod ordered;
pub mod outline;
mod repeated;
#[cfg(test)]
mod tests;
mod unmanaged;
mod yaml;

use std::fmt;
use std::str::Utf8Error;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

pub use ordered::Ordered;
pub use unmanaged::without_managers;
pub use yaml::{parse_yaml, repeated_keys_error, to_yaml};

/// A request body.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The value. Of a duplicate key it has the last value.
    pub value: Value,
    /// Paths of duplicate keys, as in `metadata.labels.a` or `items[0].x`, each once. In YAML, a sentence
    /// about each.
    pub duplicates: Vec<String>,
}

/// The body is malformed. Displays as a text fit for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    message: String,
}

/// Kubernetes reports no more than this.
const MAX_DUPLICATES: usize = 100;

/// Parses one JSON value. Integers that do not fit into `i64` become floating point numbers, as in
/// Kubernetes.
///
/// Nesting is limited to 128 levels, so that recursive functions on values cannot overflow the stack.
pub fn parse(bytes: &[u8]) -> Result<Parsed, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(JsonError::not_utf8)?;
    let mut notes = Notes::new(usize::MAX, usize::MAX);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = notes
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| fault::describe(&error, text))?;
    Ok(notes.finish(value))
}

impl JsonError {
    fn not_utf8(error: Utf8Error) -> Self {
        Self { message: format!("invalid UTF-8 after byte {}", error.valid_up_to()) }
    }
}

/// State kept while a value is built.
struct Notes {
    /// Paths relative to the value that is being built, with a leading `.` or `[`. The callers prepend the
    /// rest: so paths cost nothing without duplicate keys.
    duplicates: Vec<String>,
    /// Bytes that the value may still take: a few aliases make much out of a small YAML document.
    budget: usize,
    /// Levels that the value may still nest. `serde_json` has a limit of its own.
    levels: usize,
}

impl Notes {
    fn new(budget: usize, levels: usize) -> Self {
        Self { duplicates: Vec::new(), budget, levels }
    }

    fn finish(self, value: Value) -> Parsed {
        let mut duplicates: Vec<String> = Vec::with_capacity(self.duplicates.len());
        for path in self.duplicates {
            let path = path.strip_prefix('.').map_or_else(|| path.clone(), str::to_owned);
            if !duplicates.contains(&path) {
                duplicates.push(path);
            }
        }
        Parsed { value, duplicates }
    }

    fn note(&mut self, path: String) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.push(path);
        }
    }

    /// Prepends `segment` to the paths recorded since there were `known`.
    fn prefix(&mut self, known: usize, segment: impl FnOnce() -> String) {
        if self.duplicates.len() > known {
            let segment = segment();
            self.duplicates[known..].iter_mut().for_each(|path| path.insert_str(0, &segment));
        }
    }

    fn spend<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let cost = bytes.saturating_add(size_of::<Value>());
        self.budget = self.budget.checked_sub(cost).ok_or_else(|| E::custom("document is too large"))?;
        Ok(())
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.levels = self.levels.checked_sub(1).ok_or_else(|| E::custom("document is nested too deeply"))?;
        self.spend(0)
    }

    fn leave(&mut self) {
        self.levels += 1;
    }
}

impl<'de> DeserializeSeed<'de> for &mut Notes {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Notes {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.spend(0)?;
        Ok(Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.spend(0)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.spend(0)?;
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            #[allow(clippy::cast_precision_loss, reason = "what Kubernetes does with large integers")]
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.spend(0)?;
        if value == 0.0 {
            // A parser returns `-0`, which is the integer 0 in Kubernetes, as a floating point number.
            return Ok(0.into());
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.spend(value.len())?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut items = Vec::new();
        loop {
            let known = self.duplicates.len();
            let Some(item) = access.next_element_seed(&mut *self)? else {
                self.leave();
                return Ok(Value::Array(items));
            };
            self.prefix(known, || format!("[{}]", items.len()));
            items.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.spend::<A::Error>(key.len())?;
            let entry = map.entry(key);
            if matches!(entry, Entry::Occupied(_)) {
                self.note(format!(".{}", entry.key()));
            }
            let known = self.duplicates.len();
            let value = access.next_value_seed(&mut *self)?;
            self.prefix(known, || format!(".{}", entry.key()));
            match entry {
                Entry::Occupied(mut entry) => drop(entry.insert(value)),
                Entry::Vacant(entry) => drop(entry.insert(value)),
            }
        }
        self.leave();
        Ok(Value::Object(map))
    }
}
