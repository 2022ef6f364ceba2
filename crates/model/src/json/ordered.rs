//! A JSON text as a tree that keeps the order of the text, and duplicate keys.
//!
//! Bodies are parsed into it only if strict decoding has something to report.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::{JsonError, fault};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Ordered {
    /// Neither a list nor an object.
    Scalar(Value),
    /// A list.
    List(Vec<Ordered>),
    /// The entries of an object in the order of the text.
    Object(Vec<(String, Ordered)>),
}

impl Ordered {
    /// Parses one JSON value.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(bytes).map_err(JsonError::not_utf8)?;
        serde_json::from_str(text).map_err(|error| fault::describe(&error, text))
    }

    /// The value without its order; the last value of a key counts.
    pub fn into_value(self) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Object(entries) => {
                Value::Object(entries.into_iter().map(|(key, value)| (key, value.into_value())).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Reads scalars as [`super::parse`] does.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Null))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Ordered, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            #[allow(clippy::cast_precision_loss, reason = "what Kubernetes does with large integers")]
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Ordered, E> {
        if value == 0.0 {
            return self.visit_i64(0);
        }
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Ordered::Scalar(Value::Number(number)))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Ordered, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Ordered::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Ordered, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Ordered::Object(entries))
    }
}
