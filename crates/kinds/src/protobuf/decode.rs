//! Decodes messages to JSON values.

use model::error::quote;
use serde_json::{Map, Value};

use super::wire::{Malformed, Reader, Wire};
use super::{MAGIC, TypeMeta};
use crate::schema::{Field, Or, Precision, Schema, Shape, Timestamp, Type, TypeId, WireEntry};
use crate::schema::{Wire as Tags, double, encode_base64, finish};
use quantity::Quantity;

/// The deepest nesting of messages; only JSON schemas come close.
const DEPTH_MAX: usize = 100;

/// An object out of its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// From the envelope, or the expected one if it is missing there.
    pub api_version: String,
    /// From the envelope, or the expected one if it is missing there.
    pub kind: String,
    /// The object, with apiVersion and kind.
    pub value: Value,
}

/// The reason why bytes cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The envelope is malformed.
    #[error("{0}")]
    Envelope(String),
    /// The schema table has no such kind.
    #[error("no kind {} is registered for version {}", quote(.kind), quote(.api_version))]
    UnknownKind {
        /// From the envelope.
        api_version: String,
        /// From the envelope.
        kind: String,
    },
    /// The object is malformed.
    #[error("{problem}")]
    Object {
        /// From the envelope.
        api_version: String,
        /// From the envelope.
        kind: String,
        /// The error.
        problem: Malformed,
    },
}

/// Decodes an object in its envelope. An envelope without type metadata has the type `expected`.
pub fn decode(schema: &Schema, bytes: &[u8], expected: TypeMeta<'_>) -> Result<Decoded, DecodeError> {
    decode_at(schema, bytes, expected, 0)
}

fn decode_at(
    schema: &Schema,
    bytes: &[u8],
    expected: TypeMeta<'_>,
    depth: usize,
) -> Result<Decoded, DecodeError> {
    let envelope = open(bytes)?;
    let or = |given: String, expected: &str| if given.is_empty() { expected.to_owned() } else { given };
    let (api_version, kind) =
        (or(envelope.api_version, expected.api_version), or(envelope.kind, expected.kind));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(id) = schema.by_kind(group, version, &kind) else {
        return Err(DecodeError::UnknownKind { api_version, kind });
    };
    let mut object = Map::new();
    let of = schema.get(id);
    if let Err(problem) = (Decoder { schema, depth }).message(of, envelope.raw, &mut object) {
        return Err(DecodeError::Object { api_version, kind, problem });
    }
    object.insert("apiVersion".to_owned(), api_version.as_str().into());
    object.insert("kind".to_owned(), kind.as_str().into());
    Ok(Decoded { api_version, kind, value: Value::Object(object) })
}

/// Decodes a message without envelope.
pub fn decode_message(schema: &Schema, type_id: TypeId, bytes: &[u8]) -> Result<Value, Malformed> {
    let mut object = Map::new();
    Decoder { schema, depth: 0 }.message(schema.get(type_id), bytes, &mut object)?;
    Ok(Value::Object(object))
}

/// `runtime.Unknown`. Its content encoding and type are ignored, as in kube-apiserver.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

fn open(bytes: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    let malformed = |problem: Malformed| DecodeError::Envelope(problem.to_string());
    if bytes.is_empty() {
        return Err(DecodeError::Envelope("empty data".to_owned()));
    }
    let Some(body) = bytes.strip_prefix(MAGIC) else {
        let problem =
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(DecodeError::Envelope(problem.to_owned()));
    };
    if body.is_empty() {
        return Err(DecodeError::Envelope("empty body".to_owned()));
    }
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    let mut reader = Reader(body);
    while let Some((tag, wire)) = reader.field("Unknown").map_err(malformed)? {
        match (tag, wire) {
            (1, Wire::Bytes(type_meta)) => {
                let mut reader = Reader(type_meta);
                while let Some((tag, wire)) = reader.field("TypeMeta").map_err(malformed)? {
                    match (tag, wire) {
                        (1, Wire::Bytes(text)) => envelope.api_version = lossy(text),
                        (2, Wire::Bytes(text)) => envelope.kind = lossy(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(raw)) => envelope.raw = raw,
            _ => {}
        }
    }
    Ok(envelope)
}

struct Decoder<'a> {
    schema: &'a Schema,
    depth: usize,
}

impl Decoder<'_> {
    /// Merges a message into an object: protobuf allows a message to be split.
    fn message(&self, of: &Type, bytes: &[u8], object: &mut Map<String, Value>) -> Result<(), Malformed> {
        let mut known = if object.is_empty() { PresentFields::Some(0) } else { PresentFields::Any };
        self.fields(of, of.wire(), bytes, &mut PartialObject { object, known: &mut known })?;
        finish(self.schema, of, object);
        Ok(())
    }

    fn deeper(&self) -> Result<Self, Malformed> {
        if self.depth == DEPTH_MAX {
            return Err(Malformed::Depth);
        }
        Ok(Self { schema: self.schema, depth: self.depth + 1 })
    }

    fn fields(
        &self,
        of: &Type,
        tags: &Tags,
        bytes: &[u8],
        target: &mut PartialObject<'_>,
    ) -> Result<(), Malformed> {
        let mut reader = Reader(bytes);
        while let Some((tag, wire)) = reader.field(&of.name)? {
            match (tags.get(tag), wire) {
                (Some(WireEntry::Field(index)), wire) => {
                    let field = &of.fields()[usize::from(*index)];
                    let is_again = target.known.meets(*index);
                    if let Some(value) = is_again.then(|| target.object.get_mut(&*field.name)).flatten() {
                        self.value(field, &field.shape, wire, value)?;
                    } else if !is_left_out(field, wire) {
                        let mut value = Value::Null;
                        self.value(field, &field.shape, wire, &mut value)?;
                        target.object.insert(field.name.to_string(), value);
                    }
                }
                (Some(WireEntry::Embedded(inner)), Wire::Bytes(bytes)) => {
                    self.deeper()?.fields(of, inner, bytes, target)?;
                }
                (Some(WireEntry::Embedded(_)) | None, _) => {}
            }
        }
        Ok(())
    }

    /// Merges one occurrence of a field into its present value.
    fn value(&self, field: &Field, shape: &Shape, wire: Wire, value: &mut Value) -> Result<(), Malformed> {
        *value = match (shape, wire) {
            (Shape::String { .. }, Wire::Bytes(bytes)) => Value::String(lossy(bytes)),
            (Shape::Bytes, Wire::Bytes(bytes)) => Value::String(encode_base64(bytes)),
            (Shape::Bool, Wire::Varint(number)) => Value::Bool(number != 0),
            // Go truncates a number that is too large.
            (Shape::Int32, Wire::Varint(number)) => Value::from(number as i32),
            (Shape::Int64, Wire::Varint(number)) => Value::from(number.cast_signed()),
            (Shape::Double, Wire::Fixed64(bits)) => double(f64::from_bits(bits)),
            (Shape::Time, Wire::Bytes(bytes)) => time(bytes, Precision::Seconds)?,
            (Shape::MicroTime, Wire::Bytes(bytes)) => time(bytes, Precision::Micros)?,
            (Shape::Quantity, Wire::Bytes(bytes)) => {
                let text = lossy(first_bytes(bytes, "Quantity")?.unwrap_or(b"0"));
                let spelled =
                    Quantity::respell(&text).map_err(|problem| Malformed::Value(problem.to_string()))?;
                Value::String(spelled.into_owned())
            }
            (Shape::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
            (Shape::Raw, Wire::Bytes(bytes)) => self.raw(bytes)?,
            // Go keeps invalid `FieldsV1` until it parses them, and then drops them.
            (Shape::Fields | Shape::Json, Wire::Bytes(bytes)) => {
                let json = first_bytes(bytes, "FieldsV1")?.unwrap_or_default();
                serde_json::from_slice(json).unwrap_or_default()
            }
            (Shape::Object(id), Wire::Bytes(bytes)) => {
                return self.deeper()?.message(self.schema.get(*id), bytes, as_object(value));
            }
            (Shape::Or(id, or), Wire::Bytes(bytes)) => return self.or(field, *id, *or, bytes, value),
            (Shape::Map(item), Wire::Bytes(bytes)) => {
                return self.entry(field, item, bytes, as_object(value));
            }
            (Shape::Wrapped(item), Wire::Bytes(bytes)) => {
                let items = as_list(value);
                let mut reader = Reader(bytes);
                while let Some((tag, wire)) = reader.field(&field.name)? {
                    if tag == 1 {
                        self.item(field, item, wire, items)?;
                    }
                }
                return Ok(());
            }
            (Shape::List(item), wire) => return self.item(field, item, wire, as_list(value)),
            (_, wire) => return Err(wrong_type(field, wire)),
        };
        Ok(())
    }

    /// One item of a list, or several packed numbers: decoders accept both.
    fn item(&self, field: &Field, item: &Shape, wire: Wire, items: &mut Vec<Value>) -> Result<(), Malformed> {
        if let (Shape::Bool | Shape::Int32 | Shape::Int64, Wire::Bytes(packed)) = (item, wire) {
            let mut reader = Reader(packed);
            while !reader.0.is_empty() {
                let number = reader.varint()?;
                self.item(field, item, Wire::Varint(number), items)?;
            }
            return Ok(());
        }
        let mut value = Value::Null;
        self.value(field, item, wire, &mut value)?;
        items.push(value);
        Ok(())
    }

    fn entry(
        &self,
        field: &Field,
        item: &Shape,
        bytes: &[u8],
        entries: &mut Map<String, Value>,
    ) -> Result<(), Malformed> {
        let (mut key, mut value) = (String::new(), Value::Null);
        let mut reader = Reader(bytes);
        let mut found = false;
        while let Some((tag, wire)) = reader.field(&field.name)? {
            match (tag, wire) {
                (1, Wire::Bytes(text)) => key = lossy(text),
                (2, wire) => {
                    found = true;
                    self.value(field, item, wire, &mut value)?;
                }
                _ => {}
            }
        }
        if !found {
            // An entry without a value has the zero value.
            let empty: Wire = match item {
                Shape::Bool | Shape::Int32 | Shape::Int64 => Wire::Varint(0),
                Shape::Double => Wire::Fixed64(0),
                _ => Wire::Bytes(&[]),
            };
            self.value(field, item, empty, &mut value)?;
        }
        entries.insert(key, value);
        Ok(())
    }

    /// A struct or its scalar form; a message with both is decoded as Go does.
    fn or(
        &self,
        field: &Field,
        id: TypeId,
        or: Or,
        bytes: &[u8],
        value: &mut Value,
    ) -> Result<(), Malformed> {
        let (mut allows, mut object, mut items) = (false, Value::Null, Vec::new());
        let mut reader = Reader(bytes);
        while let Some((tag, wire)) = reader.field(&field.name)? {
            match (or, tag, wire) {
                (Or::Bool, 1, Wire::Varint(number)) => allows = number != 0,
                (Or::Bool, 2, Wire::Bytes(bytes)) | (Or::List | Or::Strings, 1, Wire::Bytes(bytes)) => {
                    self.deeper()?.message(self.schema.get(id), bytes, as_object(&mut object))?;
                }
                (Or::List, 2, wire) => self.item(field, &Shape::Object(id), wire, &mut items)?,
                (Or::Strings, 2, Wire::Bytes(text)) => items.push(Value::String(lossy(text))),
                _ => {}
            }
        }
        *value = match or {
            Or::Bool if object.is_null() => Value::Bool(allows),
            Or::List | Or::Strings if !items.is_empty() => Value::Array(items),
            _ => object,
        };
        Ok(())
    }

    /// An embedded object: JSON or another envelope.
    fn raw(&self, bytes: &[u8]) -> Result<Value, Malformed> {
        let raw = first_bytes(bytes, "RawExtension")?.unwrap_or_default();
        if raw.is_empty() {
            return Ok(Value::Null);
        }
        if raw.starts_with(MAGIC) {
            let inner = decode_at(self.schema, raw, TypeMeta::UNKNOWN, self.deeper()?.depth);
            return inner.map(|decoded| decoded.value).map_err(|problem| match problem {
                DecodeError::Object { problem, .. } => problem,
                other => Malformed::Value(other.to_string()),
            });
        }
        serde_json::from_slice(raw).map_err(|problem| Malformed::Value(problem.to_string()))
    }
}

/// A partially decoded object.
struct PartialObject<'o> {
    object: &'o mut Map<String, Value>,
    known: &'o mut PresentFields,
}

/// The fields that an object may already have: nearly every field occurs once, which saves a lookup.
enum PresentFields {
    /// The fields with these bits.
    Some(u64),
    /// Any field.
    Any,
}

impl PresentFields {
    /// Whether a field may already be present; marks it as present.
    fn meets(&mut self, index: u16) -> bool {
        match self {
            Self::Some(bits) if index < 64 => {
                let is_there = *bits & (1 << index) != 0;
                *bits |= 1 << index;
                is_there
            }
            Self::Some(_) | Self::Any => true,
        }
    }
}

/// Whether JSON omits this value. Go encodes zero values in protobuf, and most fields are zero.
fn is_left_out(field: &Field, wire: Wire) -> bool {
    let is_empty = matches!(
        (&field.shape, wire),
        (Shape::String { .. } | Shape::Bytes, Wire::Bytes(&[]))
            | (Shape::Bool | Shape::Int32 | Shape::Int64, Wire::Varint(0))
    );
    is_empty && !field.pointer && !field.always_written()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it is an object now")
}

fn as_list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it is a list now")
}

/// Field 1 of a message that has no other field.
fn first_bytes<'a>(bytes: &'a [u8], message: &str) -> Result<Option<&'a [u8]>, Malformed> {
    let mut found = None;
    let mut reader = Reader(bytes);
    while let Some((tag, wire)) = reader.field(message)? {
        if let (1, Wire::Bytes(bytes)) = (tag, wire) {
            found = Some(bytes);
        }
    }
    Ok(found)
}

/// Seconds and nanoseconds; an empty message is Go's zero time.
fn time(bytes: &[u8], precision: Precision) -> Result<Value, Malformed> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0i64, 0i32);
    let mut reader = Reader(bytes);
    while let Some((tag, wire)) = reader.field("Timestamp")? {
        match (tag, wire) {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            (2, Wire::Varint(number)) => nanos = number as i32,
            _ => {}
        }
    }
    if precision == Precision::Seconds {
        nanos = 0;
    }
    // Nanoseconds beyond a second carry over, as in Go's `time.Unix`; the precision of JSON truncates the rest.
    let nanos = nanos / 1000 * 1000;
    let seconds = seconds.saturating_add(i64::from(nanos.div_euclid(1_000_000_000)));
    let nanos = nanos.rem_euclid(1_000_000_000).cast_unsigned();
    let time = Timestamp { seconds, nanos };
    Ok(if time.is_zero() { Value::Null } else { Value::String(time.format(precision)) })
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut number, mut text) = (false, 0i32, String::new());
    let mut reader = Reader(bytes);
    while let Some((tag, wire)) = reader.field("IntOrString")? {
        match (tag, wire) {
            (1, Wire::Varint(kind)) => is_text = kind == 1,
            (2, Wire::Varint(value)) => number = value as i32,
            (3, Wire::Bytes(value)) => text = lossy(value),
            _ => {}
        }
    }
    Ok(if is_text { Value::String(text) } else { Value::from(number) })
}

fn wrong_type(field: &Field, wire: Wire) -> Malformed {
    let mut name = field.name.to_string();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Malformed::WireType { wire_type: wire.wire_type(), field: name }
}
