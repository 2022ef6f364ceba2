//! Encodes JSON trees as messages: the simple reference for the encoder that works without trees.

use serde_json::{Map, Value};

use crate::protobuf::wire::{put_bytes, put_double, put_int, put_message};
use crate::schema::{Field, Or, Precision, Schema, Shape, Timestamp, Type, TypeId, WireEntry};
use crate::schema::{Wire as Tags, decode_base64};

/// Encodes a message without envelope.
pub fn encode_message(schema: &Schema, type_id: TypeId, value: &Value, out: &mut Vec<u8>) {
    let of = schema.get(type_id);
    Encoder { schema }.fields(of, of.wire(), value.as_object(), out);
}

struct Encoder<'a> {
    schema: &'a Schema,
}

impl Encoder<'_> {
    fn fields(&self, of: &Type, tags: &Tags, object: Option<&Map<String, Value>>, out: &mut Vec<u8>) {
        for (tag, entry) in tags.entries() {
            match entry {
                WireEntry::Embedded(inner) => {
                    put_message(out, *tag, |out| self.fields(of, inner, object, out))
                }
                WireEntry::Field(index) => {
                    let field = &of.fields()[usize::from(*index)];
                    self.field(field, *tag, object.and_then(|object| object.get(&*field.name)), out);
                }
            }
        }
    }

    /// Go omits nil pointers, bytes, lists and maps, and encodes all other values, even empty ones.
    fn field(&self, field: &Field, tag: u32, value: Option<&Value>, out: &mut Vec<u8>) {
        match (&field.shape, value) {
            (Shape::Wrapped(_) | Shape::Bytes, None | Some(Value::Null)) => {}
            (_, None) if field.pointer => {}
            // For a nil pointer that Go always encodes JSON has null; elsewhere null is a pointer to the zero time.
            (_, Some(Value::Null)) if field.pointer && field.written => {}
            (shape, value) => self.value(shape, tag, value.unwrap_or(&Value::Null), out),
        }
    }

    fn value(&self, shape: &Shape, tag: u32, value: &Value, out: &mut Vec<u8>) {
        match shape {
            Shape::String { .. } => put_bytes(out, tag, as_text(value).as_bytes()),
            Shape::Bytes => put_bytes(out, tag, &decode_base64(as_text(value)).unwrap_or_default()),
            Shape::Bool => put_int(out, tag, i64::from(value.as_bool().unwrap_or_default())),
            Shape::Int32 | Shape::Int64 => put_int(out, tag, value.as_i64().unwrap_or_default()),
            Shape::Double => put_double(out, tag, value.as_f64().unwrap_or_default()),
            Shape::Time => put_time(out, tag, value, Precision::Seconds),
            Shape::MicroTime => put_time(out, tag, value, Precision::Micros),
            Shape::Quantity => put_message(out, tag, |out| put_bytes(out, 1, as_text(value).as_bytes())),
            Shape::IntOrString => put_message(out, tag, |out| {
                put_int(out, 1, i64::from(value.is_string()));
                put_int(out, 2, value.as_i64().unwrap_or_default());
                put_bytes(out, 3, as_text(value).as_bytes());
            }),
            Shape::Raw | Shape::Fields | Shape::Json => put_message(out, tag, |out| {
                if !value.is_null() {
                    put_bytes(out, 1, &serde_json::to_vec(value).expect("a JSON value always encodes"));
                }
            }),
            Shape::Object(id) => put_message(out, tag, |out| {
                let of = self.schema.get(*id);
                self.fields(of, of.wire(), value.as_object(), out);
            }),
            Shape::Or(id, or) => put_message(out, tag, |out| self.or(*id, *or, value, out)),
            Shape::List(item) => {
                for value in value.as_array().into_iter().flatten() {
                    self.value(item, tag, value, out);
                }
            }
            Shape::Wrapped(item) => put_message(out, tag, |out| {
                for value in value.as_array().into_iter().flatten() {
                    self.value(item, 1, value, out);
                }
            }),
            Shape::Map(item) => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    put_message(out, tag, |out| {
                        put_bytes(out, 1, key.as_bytes());
                        self.value(item, 2, value, out);
                    });
                }
            }
        }
    }

    /// Encodes the struct as one field and its scalar form as another.
    fn or(&self, id: TypeId, or: Or, value: &Value, out: &mut Vec<u8>) {
        let (object, other) = if or == Or::Bool { (2, 1) } else { (1, 2) };
        if or == Or::Bool {
            put_int(out, other, i64::from(*value != Value::Bool(false)));
        }
        match value {
            Value::Object(_) => self.value(&Shape::Object(id), object, value, out),
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::String(text) => put_bytes(out, other, text.as_bytes()),
                        item => self.value(&Shape::Object(id), other, item, out),
                    }
                }
            }
            _ => {}
        }
    }
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Go's zero time is an empty message.
fn put_time(out: &mut Vec<u8>, tag: u32, value: &Value, precision: Precision) {
    let time = value.as_str().and_then(|text| Timestamp::parse(text, precision).ok());
    put_message(out, tag, |out| {
        if let Some(time) = time {
            put_int(out, 1, time.seconds);
            put_int(out, 2, i64::from(time.nanos));
        }
    });
}
