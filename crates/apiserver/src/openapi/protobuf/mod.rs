//! OpenAPI documents as gnostic protobuf messages. Only the fields of our documents are encoded.

pub mod v2;
pub mod v3;

use serde_json::{Map, Value};

use super::document::Pieces;

/// A value as YAML; JSON is valid YAML.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, value.to_string().as_bytes());
    message
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A message under construction.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    /// A message with one nested message.
    fn of(tag: u32, inner: &Self) -> Self {
        let mut message = Self::default();
        message.message(tag, inner);
        message
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).expect("seven bits fit a byte") | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).expect("seven bits fit a byte"));
    }

    fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        self.varint(u64::from(tag << 3 | 2));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, tag: u32, inner: &Self) {
        self.bytes(tag, &inner.0);
    }

    fn named(&mut self, tag: u32, name: &str, value: &Self) {
        let mut pair = Self::default();
        pair.bytes(1, name.as_bytes());
        pair.message(2, value);
        self.message(tag, &pair);
    }

    /// Encoded parts, each dropped after it is copied.
    fn pieces(&mut self, tag: u32, pieces: Pieces) {
        for (name, piece) in pieces {
            self.named(tag, &name, &Self(piece));
        }
    }

    fn text(&mut self, tag: u32, value: &Value) {
        if let Some(text) = value.as_str() {
            self.bytes(tag, text.as_bytes());
        }
    }

    fn texts(&mut self, tag: u32, values: &Value) {
        items(values).for_each(|value| self.text(tag, value));
    }

    /// A missing flag is false.
    fn flag(&mut self, tag: u32, value: &Value) {
        if value.as_bool() == Some(true) {
            self.truth(tag, true);
        }
    }

    fn truth(&mut self, tag: u32, value: bool) {
        self.varint(u64::from(tag << 3));
        self.varint(u64::from(value));
    }

    fn number(&mut self, tag: u32, value: &Value) {
        if let Some(number) = value.as_f64() {
            self.varint(u64::from(tag << 3 | 1));
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn count(&mut self, tag: u32, value: &Value) {
        if let Some(count) = value.as_u64() {
            self.varint(u64::from(tag << 3));
            self.varint(count);
        }
    }

    fn extensions(&mut self, tag: u32, value: &Value) {
        for (name, extension) in fields(value).filter(|(name, _)| name.starts_with("x-")) {
            self.named(tag, name, &any(extension));
        }
    }
}
