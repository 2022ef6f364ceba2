//! Encodes the JSON of objects as messages, with the field order and the zero values of Go's generated code.
//!
//! The JSON comes from the store or from the server itself. A value of the wrong type is encoded as the zero value: an
//! object that was accepted once can always be read.

use model::error::quote;
use model::json::outline::{Json, Outline, Unreadable};
use model::object::text_in;
use serde_json::{Value, json};

use super::wire::{begin, end, put_bytes, put_double, put_int, put_key, put_message, put_varint};
use super::{MAGIC, TypeMeta};
use crate::schema::{Field, Or, Precision, Schema, Shape, Timestamp, Type, TypeId, WireEntry};
use crate::schema::{Wire as Tags, decode_base64};

/// The reason why an object cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The schema table has no such kind: it exists only in JSON.
    #[error("no kind {} is registered for version {}", quote(.kind), quote(.api_version))]
    UnknownKind {
        /// From the object.
        api_version: String,
        /// From the object.
        kind: String,
    },
    /// The text is not JSON.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Encodes an object, a list or a `Status` in its envelope.
pub fn encode(schema: &Schema, object: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::with_capacity(1024);
    Encoder::new(schema).object(type_of(object), &text_of(object), &mut out)?;
    Ok(out)
}

/// Encodes a watch event with its length prefix.
pub fn watch_event(schema: &Schema, event: &str, object: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::with_capacity(1024);
    Encoder::new(schema).event(event, type_of(object), &text_of(object), &mut out)?;
    Ok(out)
}

/// apiVersion and kind of an object.
fn type_of(object: &Value) -> TypeMeta<'_> {
    let text = |key: &str| text_in(object, key);
    TypeMeta::new(text("apiVersion"), text("kind"))
}

fn text_of(object: &Value) -> Vec<u8> {
    serde_json::to_vec(object).expect("a JSON value always encodes")
}

/// The end of an envelope: empty content encoding and content type.
pub const ENVELOPE_END: &[u8] = &[0x1a, 0, 0x22, 0];

/// Encodes objects one by one. Their own kind and apiVersion fields are ignored.
#[derive(Debug)]
pub struct Encoder<'s> {
    schema: &'s Schema,
    outline: Outline,
    slots: Vec<u32>,
}

impl<'s> Encoder<'s> {
    /// An encoder for the types of a schema.
    pub fn new(schema: &'s Schema) -> Self {
        Self { schema, outline: Outline::default(), slots: Vec::new() }
    }

    /// Encodes an object in its envelope.
    pub fn object(&mut self, of: TypeMeta<'_>, json: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.named(of, of, json, out)
    }

    /// Like [`Encoder::object`], with another type in the envelope.
    pub fn named(
        &mut self,
        name: TypeMeta<'_>,
        of: TypeMeta<'_>,
        json: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let type_id = self.known(of)?;
        put_opening(out, name);
        let start = begin(out, 2);
        self.message(type_id, json, out)?;
        end(out, start);
        out.extend_from_slice(ENVELOPE_END);
        Ok(())
    }

    /// Encodes a watch event with its length prefix.
    pub fn event(
        &mut self,
        event: &str,
        of: TypeMeta<'_>,
        json: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        put_bytes(out, 1, event.as_bytes());
        let (outer, inner) = (begin(out, 2), begin(out, 1));
        self.object(of, json, out)?;
        end(out, inner);
        end(out, outer);
        let length = u32::try_from(out.len() - length_at - 4).expect("an object is far smaller than 4 GiB");
        out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// Encodes an object as an item of a list.
    pub fn item(&mut self, of: TypeMeta<'_>, json: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let type_id = self.known(of)?;
        let start = begin(out, 2);
        self.message(type_id, json, out)?;
        end(out, start);
        Ok(())
    }

    /// The bytes before the items of a list, which have `items` bytes in total; [`ENVELOPE_END`] follows them.
    pub fn list_opening(
        &mut self,
        of: TypeMeta<'_>,
        metadata: &Value,
        items: usize,
    ) -> Result<Vec<u8>, EncodeError> {
        let type_id = self.known(of)?;
        let mut own = Vec::new();
        self.message(type_id, &text_of(&json!({ "metadata": metadata })), &mut own)?;
        let mut out = Vec::with_capacity(own.len() + 128);
        put_opening(&mut out, of);
        put_key(&mut out, 2, 2);
        put_varint(&mut out, (own.len() + items) as u64);
        out.extend_from_slice(&own);
        Ok(out)
    }

    /// Encodes a message without envelope.
    pub(super) fn message(
        &mut self,
        type_id: TypeId,
        json: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let object = self.outline.read(json)?;
        self.slots.clear();
        let slots = &mut self.slots;
        Message { schema: self.schema, slots, out }.object(type_id, Some(object));
        Ok(())
    }

    fn known(&self, TypeMeta { api_version, kind }: TypeMeta<'_>) -> Result<TypeId, EncodeError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.schema.by_kind(group, version, kind).ok_or_else(|| EncodeError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })
    }
}

fn put_opening(out: &mut Vec<u8>, TypeMeta { api_version, kind }: TypeMeta<'_>) {
    out.extend_from_slice(MAGIC);
    put_message(out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
}

/// The slot of a field without a value.
const ABSENT: u32 = u32::MAX;

/// The state of an encoding. JSON sorts fields by name, protobuf by tag: a stack of slots, one per field, holds the
/// indices of the values of all open objects.
struct Message<'a> {
    schema: &'a Schema,
    slots: &'a mut Vec<u32>,
    out: &'a mut Vec<u8>,
}

/// A value; `None` for `null` and for a missing field.
type Present<'j> = Option<Json<'j>>;

impl Message<'_> {
    fn object(&mut self, type_id: TypeId, value: Present) {
        let of = self.schema.get(type_id);
        let base = self.slots.len();
        self.slots.resize(base + of.fields().len(), ABSENT);
        if let Some(object) = value {
            self.find(of, base, object);
        }
        self.fields(of, of.wire(), base, value);
        self.slots.truncate(base);
    }

    /// Keys are usually sorted like fields, so each search starts at the last match; for an unsorted key it starts over.
    fn find(&mut self, of: &Type, base: usize, object: Json) {
        let fields = of.fields();
        let mut from = 0;
        for (key, value) in object.members() {
            let Some(key) = key.plain() else { continue };
            let before = |field: &Field| field.name.as_bytes() < key;
            if from > 0 && !before(&fields[from - 1]) {
                from = 0;
            }
            from += fields[from..].iter().take_while(|field| before(field)).count();
            if fields.get(from).is_some_and(|field| field.name.as_bytes() == key) {
                self.slots[base + from] = value.number();
            }
        }
    }

    fn fields(&mut self, of: &Type, tags: &Tags, base: usize, object: Present) {
        for (tag, entry) in tags.entries() {
            match entry {
                WireEntry::Embedded(inner) => {
                    let start = begin(self.out, *tag);
                    self.fields(of, inner, base, object);
                    end(self.out, start);
                }
                WireEntry::Field(index) => {
                    let slot = self.slots[base + usize::from(*index)];
                    let value = object.filter(|_| slot != ABSENT).map(|object| object.other(slot));
                    self.field(&of.fields()[usize::from(*index)], *tag, value);
                }
            }
        }
    }

    /// Go omits nil pointers, bytes, lists and maps, and encodes all other values, even empty ones.
    fn field(&mut self, field: &Field, tag: u32, value: Present) {
        let present = value.filter(|value| !value.is_null());
        let is_left_out = match &field.shape {
            Shape::Wrapped(_) | Shape::Bytes => present.is_none(),
            // For a nil pointer that Go always encodes JSON has null; elsewhere null is a pointer to the zero time.
            _ => field.pointer && (value.is_none() || (field.written && present.is_none())),
        };
        if !is_left_out {
            self.value(&field.shape, tag, present);
        }
    }

    fn value(&mut self, shape: &Shape, tag: u32, value: Present) {
        match shape {
            Shape::String { .. } => self.text(tag, value),
            Shape::Bytes => {
                let bytes = value.and_then(Json::as_text).and_then(|text| decode_base64(&text).ok());
                put_bytes(self.out, tag, &bytes.unwrap_or_default());
            }
            Shape::Bool => put_int(self.out, tag, i64::from(value.and_then(Json::as_bool) == Some(true))),
            Shape::Int32 | Shape::Int64 => put_int(self.out, tag, number(value)),
            Shape::Double => {
                put_double(self.out, tag, value.and_then(Json::as_number).unwrap_or_default());
            }
            Shape::Time => self.time(tag, value, Precision::Seconds),
            Shape::MicroTime => self.time(tag, value, Precision::Micros),
            Shape::List(item) => {
                for item_value in value.into_iter().flat_map(Json::items) {
                    self.value(item, tag, not_null(item_value));
                }
            }
            Shape::Map(item) => {
                for (key, item_value) in value.into_iter().flat_map(Json::members) {
                    let start = begin(self.out, tag);
                    self.text(1, Some(key));
                    self.value(item, 2, not_null(item_value));
                    end(self.out, start);
                }
            }
            _ => {
                let start = begin(self.out, tag);
                self.inside(shape, value);
                end(self.out, start);
            }
        }
    }

    /// Encodes a value that is a message.
    fn inside(&mut self, shape: &Shape, value: Present) {
        match shape {
            Shape::Object(id) => self.object(*id, value),
            Shape::Or(id, or) => self.or(*id, *or, value),
            Shape::Quantity => self.text(1, value),
            Shape::IntOrString => {
                put_int(self.out, 1, i64::from(value.is_some_and(Json::is_string)));
                put_int(self.out, 2, number(value));
                self.text(3, value);
            }
            Shape::Wrapped(item) => {
                for item_value in value.into_iter().flat_map(Json::items) {
                    self.value(item, 1, not_null(item_value));
                }
            }
            // The remaining shapes are JSON inside protobuf.
            _ => {
                if let Some(value) = value {
                    put_bytes(self.out, 1, value.raw());
                }
            }
        }
    }

    /// Encodes the struct as one field and its scalar form as another.
    fn or(&mut self, id: TypeId, or: Or, value: Present) {
        let (object, other) = if or == Or::Bool { (2, 1) } else { (1, 2) };
        if or == Or::Bool {
            put_int(self.out, other, i64::from(value.and_then(Json::as_bool) != Some(false)));
        }
        let Some(value) = value else { return };
        if value.is_object() {
            self.value(&Shape::Object(id), object, Some(value));
        }
        for item in value.items() {
            if item.is_string() {
                self.text(other, Some(item));
            } else {
                self.value(&Shape::Object(id), other, not_null(item));
            }
        }
    }

    fn text(&mut self, tag: u32, value: Present) {
        match value.and_then(Json::plain) {
            Some(plain) => put_bytes(self.out, tag, plain),
            None => {
                let text = value.and_then(Json::as_text).unwrap_or_default();
                put_bytes(self.out, tag, text.as_bytes());
            }
        }
    }

    /// Go's zero time is an empty message.
    fn time(&mut self, tag: u32, value: Present, precision: Precision) {
        let text = value.and_then(Json::as_text);
        let time = text.and_then(|text| Timestamp::parse(&text, precision).ok());
        put_message(self.out, tag, |out| {
            if let Some(time) = time {
                put_int(out, 1, time.seconds);
                put_int(out, 2, i64::from(time.nanos));
            }
        });
    }
}

fn not_null(value: Json) -> Present {
    Some(value).filter(|value| !value.is_null())
}

fn number(value: Present) -> i64 {
    value.and_then(Json::as_number).unwrap_or_default()
}
