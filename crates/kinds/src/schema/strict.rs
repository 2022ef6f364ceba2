//! Strict decoding: unknown and duplicate fields in the order of the text, and the merge of duplicates.
//!
//! Go decodes a duplicate field into the existing value: structs and maps are merged, lists item by item.

use std::collections::HashSet;

use model::error::quote;
use model::json::Ordered;
use serde_json::{Map, Value};

use super::types::{Field, Schema, Shape, TypeId};

/// The most errors that are reported, as in Kubernetes.
const MAX: usize = 100;

/// One message per unknown or duplicate field in an object of the type, without repetitions. Kind and version are
/// fields of every object.
pub fn complaints(schema: &Schema, type_id: TypeId, body: &Ordered) -> Vec<String> {
    let mut walk = Walk::default();
    walk.value(Expected::Top(schema, type_id), body);
    walk.found
}

/// Like [`complaints`], for the operations of a JSON patch.
pub fn patch_complaints(patch: &Ordered) -> Vec<String> {
    let mut walk = Walk::default();
    if let Ordered::List(operations) = patch {
        walk.list(operations, |walk, operation| walk.value(Expected::Operation, operation));
    }
    walk.found
}

/// The object that Go decodes from a text with duplicate fields.
pub fn merged(schema: &Schema, type_id: TypeId, body: Ordered) -> Value {
    joined(schema, &Shape::Object(type_id), false, None, body)
}

/// The shape expected at a place of the text.
#[derive(Clone, Copy)]
enum Expected<'a> {
    /// An object with kind and version.
    Top(&'a Schema, TypeId),
    /// A value of a type.
    Of(&'a Schema, &'a Shape),
    /// An operation of a JSON patch.
    Operation,
    /// Any value: no field is unknown.
    Any,
    /// Not visited: values with a decoder of their own, and values of unknown fields.
    Opaque,
}

/// A key of an object as the schema knows it.
enum KeySchema<'a> {
    Known(Expected<'a>),
    Unknown,
}

impl<'a> Expected<'a> {
    /// The shape expected of an entry of an object.
    fn entry(self, key: &str) -> KeySchema<'a> {
        let field = |schema: &'a Schema, id: TypeId| match schema.get(id).field(key) {
            Some(field) => KeySchema::Known(Self::Of(schema, &field.shape)),
            None => KeySchema::Unknown,
        };
        match self {
            Self::Top(..) if matches!(key, "kind" | "apiVersion") => KeySchema::Known(Self::Opaque),
            Self::Top(schema, id) | Self::Of(schema, &Shape::Object(id)) => field(schema, id),
            Self::Of(schema, Shape::Map(item)) => KeySchema::Known(Self::Of(schema, item)),
            Self::Operation => match key {
                "op" | "path" | "from" => KeySchema::Known(Self::Opaque),
                "value" => KeySchema::Known(Self::Any),
                _ => KeySchema::Unknown,
            },
            Self::Any => KeySchema::Known(Self::Any),
            Self::Of(..) | Self::Opaque => KeySchema::Known(Self::Opaque),
        }
    }

    /// The shape expected of an entry of a list.
    fn item(self) -> Self {
        match self {
            Self::Of(schema, Shape::List(item) | Shape::Wrapped(item)) => Self::Of(schema, item),
            Self::Any => Self::Any,
            _ => Self::Opaque,
        }
    }

    fn is_object(self) -> bool {
        let is_struct = |shape: &Shape| matches!(shape, Shape::Object(_) | Shape::Map(_));
        match self {
            Self::Top(..) | Self::Operation | Self::Any => true,
            Self::Of(_, shape) => is_struct(shape),
            Self::Opaque => false,
        }
    }
}

#[derive(Default)]
struct Walk {
    path: String,
    found: Vec<String>,
    /// The messages in `found`, to report each once.
    seen: HashSet<String>,
}

impl Walk {
    fn value(&mut self, expected: Expected<'_>, value: &Ordered) {
        match value {
            Ordered::Object(entries) if expected.is_object() => self.object(expected, entries),
            Ordered::List(items) => self.list(items, |walk, item| walk.value(expected.item(), item)),
            Ordered::Object(_) | Ordered::Scalar(_) => {}
        }
    }

    fn object(&mut self, expected: Expected<'_>, entries: &[(String, Ordered)]) {
        let (mut keys, length) = (HashSet::new(), self.path.len());
        for (key, value) in entries {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(key);
            match expected.entry(key) {
                KeySchema::Unknown => self.note("unknown"),
                KeySchema::Known(expected) => {
                    if !keys.insert(key) {
                        self.note("duplicate");
                    }
                    self.value(expected, value);
                }
            }
            self.path.truncate(length);
        }
    }

    fn list(&mut self, items: &[Ordered], mut each: impl FnMut(&mut Self, &Ordered)) {
        let length = self.path.len();
        for (index, item) in items.iter().enumerate() {
            self.path.push_str(&format!("[{index}]"));
            each(self, item);
            self.path.truncate(length);
        }
    }

    fn note(&mut self, what: &str) {
        if self.found.len() < MAX {
            let complaint = format!("{what} field {}", quote(&self.path));
            if self.seen.insert(complaint.clone()) {
                self.found.push(complaint);
            }
        }
    }
}

/// The value of a field after decoding `new` into `old`.
fn joined(schema: &Schema, shape: &Shape, pointer: bool, old: Option<Value>, new: Ordered) -> Value {
    match (shape, old, new) {
        (_, Some(old), Ordered::Scalar(Value::Null)) if !pointer && keeps_null(shape) => old,
        (Shape::Object(id), old, Ordered::Object(entries)) => {
            let mut object = object(old);
            for (key, value) in entries {
                let old = object.remove(&key);
                let value = match schema.get(*id).field(&key) {
                    Some(Field { shape, pointer, .. }) => joined(schema, shape, *pointer, old, value),
                    None => value.into_value(),
                };
                object.insert(key, value);
            }
            Value::Object(object)
        }
        (Shape::Map(item), old, Ordered::Object(entries)) => {
            let mut object = object(old);
            object.extend(
                entries.into_iter().map(|(key, value)| (key, joined(schema, item, false, None, value))),
            );
            Value::Object(object)
        }
        (Shape::List(item) | Shape::Wrapped(item), old, Ordered::List(items)) => {
            let mut before = match old {
                Some(Value::Array(before)) => before,
                _ => Vec::new(),
            }
            .into_iter();
            items.into_iter().map(|value| joined(schema, item, false, before.next(), value)).collect()
        }
        (_, _, new) => new.into_value(),
    }
}

/// Whether Go keeps the old value if the text has `null`.
fn keeps_null(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Object(_) | Shape::String { .. } | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double
    )
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
