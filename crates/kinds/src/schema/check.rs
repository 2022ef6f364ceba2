//! Decodes a JSON value as a type of the table, like kube-apiserver's decoder, and normalizes it to the form that Go
//! encodes.
//!
//! Unknown fields are dropped and reported. `null` counts as absent. Empty values are dropped where Go omits them;
//! structs that Go always encodes are added. A value of the wrong type is refused with Go's message.

use std::borrow::Cow;

use model::error::quote;
use serde_json::{Map, Value};

use super::types::{Field, Or, Schema, Shape, Type, TypeId};
use super::{Precision, Timestamp, decode_base64, encode_base64};
use crate::patch::json_type;
use quantity::{Quantity, QuantityError};

/// The most unknown fields that are reported, as in Kubernetes.
const UNKNOWN_MAX: usize = 100;

/// The warnings about a decoded value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// One text per dropped field: `unknown field "spec.foo"`.
    pub unknown: Vec<String>,
}

/// The reason why a value does not match its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(pub String);

impl Mismatch {
    /// The message for a request body that should have been such an object.
    pub fn of_body(&self, version: &str, kind: &str) -> String {
        format!("{kind} in version {} cannot be handled as a {kind}: {self}", quote(version))
    }
}

/// The message for a body without a recognizable kind; it quotes the beginning of the body.
pub fn unrecognized(kind: &str, problem: &str, body: &[u8]) -> String {
    const SHOWN_MAX: usize = 30;
    let shown = &body[..body.len().min(SHOWN_MAX)];
    let mut summary = match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN_MAX {
        summary.push_str(" ...");
    }
    format!("the object provided is unrecognized (must be of type {kind}): {problem} ({summary})")
}

/// Decodes `value` as `type_id` and normalizes it.
pub fn check(schema: &Schema, type_id: TypeId, value: &mut Value) -> Result<Checked, Mismatch> {
    check_at(schema, type_id, value, String::new())
}

/// Like [`check`], for a value at a path, which prefixes the paths of unknown fields.
pub(crate) fn check_at(
    schema: &Schema,
    type_id: TypeId,
    value: &mut Value,
    path: String,
) -> Result<Checked, Mismatch> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let top = Shape::Object(type_id);
    let (stack, unknown) = (Vec::new(), Vec::new());
    let mut walk = Walk { schema, owner: None, stack, path, unknown, wrong: None };
    walk.value(&top, value)?;
    match walk.wrong {
        Some(wrong) => Err(wrong),
        None => Ok(Checked { unknown: walk.unknown }),
    }
}

/// Normalizes an object with values of the right types; nested values are not visited.
pub(crate) fn finish(schema: &Schema, of: &Type, object: &mut Map<String, Value>) {
    object.retain(|key, value| !is_empty(value) || of.field(key).is_some_and(|field| keeps(field, value)));
    fill(schema, of, object);
}

/// Whether Go encodes this value of a field. `fill` adds the fields that Go always encodes, an empty list as the `null`
/// that storage has for it.
fn keeps(field: &Field, value: &Value) -> bool {
    let is_list = matches!(field.shape, Shape::List(_) | Shape::Map(_) | Shape::Wrapped(_));
    field.pointer || !is_empty(value) || (field.always_written() && !is_list)
}

/// Adds the fields that Go always encodes.
fn fill(schema: &Schema, of: &Type, object: &mut Map<String, Value>) {
    for field in of.written() {
        if !object.contains_key(&*field.name) {
            let value = if field.pointer { Value::Null } else { zero(schema, &field.shape) };
            object.insert(field.name.to_string(), value);
        }
    }
}

/// Whether Go's `omitempty` omits the value. It never omits structs.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

/// Go's encoding of a zero value.
fn zero(schema: &Schema, shape: &Shape) -> Value {
    match shape {
        Shape::String { .. } => Value::String(String::new()),
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Object(id) => {
            let mut object = Map::new();
            fill(schema, schema.get(*id), &mut object);
            Value::Object(object)
        }
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Raw
        | Shape::Fields
        | Shape::Json
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Wrapped(_)
        | Shape::Or(..) => Value::Null,
    }
}

/// Whether the value is a list for a list shape, or an object for a map shape.
fn is_container(shape: &Shape, value: &Value) -> bool {
    if matches!(shape, Shape::Map(_)) { value.is_object() } else { value.is_array() }
}

struct Walk<'a> {
    schema: &'a Schema,
    /// The innermost struct: Go's messages begin with it.
    owner: Option<&'a Type>,
    /// The field names from the root, without indexes and map keys.
    stack: Vec<&'a str>,
    /// The path from the root, with indexes and map keys.
    path: String,
    unknown: Vec<String>,
    /// The first type error: Go continues after most of them and reports the first at the end.
    wrong: Option<Mismatch>,
}

impl<'a> Walk<'a> {
    /// Decodes one value. An error ends the walk at once, as in Go's own decoders of times and the like.
    fn value(&mut self, shape: &'a Shape, value: &mut Value) -> Result<(), Mismatch> {
        if value.is_null() {
            *value = zero(self.schema, shape);
            return Ok(());
        }
        match shape {
            Shape::String { .. } => self.expect(shape, value, Value::is_string),
            Shape::Bool => self.expect(shape, value, Value::is_boolean),
            Shape::Double => match value.as_f64() {
                Some(number) => *value = double(number),
                None => self.mismatch(json_type(value), "float64"),
            },
            Shape::Int32 => self.integer("int32", value, i64::from(i32::MIN), i64::from(i32::MAX)),
            Shape::Int64 => self.integer("int64", value, i64::MIN, i64::MAX),
            Shape::Bytes => self.bytes(shape, value),
            Shape::Time => return self.time(value, Precision::Seconds),
            Shape::MicroTime => return self.time(value, Precision::Micros),
            Shape::Quantity => return quantity(value),
            Shape::IntOrString => return self.int_or_string(value),
            Shape::Raw | Shape::Fields | Shape::Json => {}
            Shape::Object(id) => return self.object(shape, *id, value),
            Shape::List(item) | Shape::Wrapped(item) => return self.list(shape, item, value),
            Shape::Map(item) => return self.map(shape, item, value),
            Shape::Or(id, or) => return self.or(*id, *or, value),
        }
        Ok(())
    }

    /// Go decodes this value separately: a type error in it ends the decoding, unknown fields are not reported.
    fn or(&mut self, id: TypeId, or: Or, value: &mut Value) -> Result<(), Mismatch> {
        let (wrong, unknown) = (self.wrong.take(), self.unknown.len());
        let object = Shape::Object(id);
        match (or, &mut *value) {
            (_, Value::Object(_)) => self.object(&object, id, value)?,
            (Or::Bool, Value::Bool(_)) => {}
            (Or::Bool, _) => return Err(Mismatch("boolean or JSON schema expected".to_owned())),
            (Or::List, Value::Array(items)) if !items.is_empty() => {
                for item in items {
                    if item.is_null() {
                        *item = zero(self.schema, &object);
                    }
                    self.object(&object, id, item)?;
                }
            }
            (Or::Strings, Value::Array(items)) if !items.is_empty() => {
                for item in items {
                    match item {
                        Value::Null => *item = Value::from(""),
                        Value::String(_) => {}
                        other => self.mismatch(json_type(other), "string"),
                    }
                }
            }
            (Or::List | Or::Strings, _) => *value = Value::Null,
        }
        self.unknown.truncate(unknown);
        match std::mem::replace(&mut self.wrong, wrong) {
            Some(inner) => Err(inner),
            None => Ok(()),
        }
    }

    fn object(&mut self, shape: &Shape, id: TypeId, value: &mut Value) -> Result<(), Mismatch> {
        let Value::Object(object) = value else {
            self.mismatch(json_type(value), &self.go_type(shape));
            return Ok(());
        };
        let of = self.schema.get(id);
        let (owner, depth, length) = (self.owner.replace(of), self.stack.len(), self.path.len());
        let mut stopped = Ok(());
        object.retain(|key, value| {
            if stopped.is_err() {
                return true;
            }
            self.enter(key);
            let kept = match of.field(key) {
                Some(field) => self.field(field, value),
                None => {
                    self.report_unknown();
                    Ok(false)
                }
            };
            self.stack.truncate(depth);
            self.path.truncate(length);
            kept.unwrap_or_else(|mismatch| {
                stopped = Err(mismatch);
                true
            })
        });
        self.owner = owner;
        fill(self.schema, of, object);
        stopped
    }

    /// Decodes a field; `false` if Go would omit it.
    fn field(&mut self, field: &'a Field, value: &mut Value) -> Result<bool, Mismatch> {
        if value.is_null() {
            return Ok(false);
        }
        if !field.embedded.is_empty() {
            self.stack.push(&field.embedded);
        }
        self.stack.push(&field.name);
        match &field.go {
            Some(go) if !is_container(&field.shape, value) => self.mismatch(json_type(value), go),
            _ => self.value(&field.shape, value)?,
        }
        Ok(keeps(field, value))
    }

    fn list(&mut self, shape: &Shape, item: &'a Shape, value: &mut Value) -> Result<(), Mismatch> {
        let Value::Array(items) = value else {
            self.mismatch(json_type(value), &self.go_type(shape));
            return Ok(());
        };
        let length = self.path.len();
        for (index, value) in items.iter_mut().enumerate() {
            let mut digits = itoa::Buffer::new();
            self.path.push('[');
            self.path.push_str(digits.format(index));
            self.path.push(']');
            self.value(item, value)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn map(&mut self, shape: &Shape, item: &'a Shape, value: &mut Value) -> Result<(), Mismatch> {
        let Value::Object(entries) = value else {
            self.mismatch(json_type(value), &self.go_type(shape));
            return Ok(());
        };
        let length = self.path.len();
        for (key, value) in entries.iter_mut() {
            self.enter(key);
            match (value.is_null(), item) {
                // The entry exists, so protobuf decodes it as empty, not as absent.
                (true, Shape::Bytes) => *value = Value::from(""),
                (true, Shape::Wrapped(_)) => *value = Value::Array(Vec::new()),
                _ => self.value(item, value)?,
            }
            self.path.truncate(length);
        }
        Ok(())
    }

    fn expect(&mut self, shape: &Shape, value: &Value, is: fn(&Value) -> bool) {
        if !is(value) {
            self.mismatch(json_type(value), &self.go_type(shape));
        }
    }

    fn integer(&mut self, go: &str, value: &mut Value, min: i64, max: i64) {
        let Value::Number(number) = &*value else { return self.mismatch(json_type(value), go) };
        match number.as_i64() {
            Some(number) if (min..=max).contains(&number) => {}
            // Go decodes `-0` as an integer; the JSON parser can only keep it as a float.
            None if number.as_f64() == Some(0.0) && number.to_string() == "-0.0" => *value = Value::from(0),
            _ => self.mismatch(&format!("number {number}"), go),
        }
    }

    /// Base64 text, or a list of numbers, which Go decodes as bytes too.
    fn bytes(&mut self, shape: &Shape, value: &mut Value) {
        let bytes = match &mut *value {
            Value::String(text) => match decode_base64(text) {
                Ok(bytes) => bytes,
                Err(at) => return self.wrong(format!("illegal base64 data at input byte {at}")),
            },
            Value::Array(items) => {
                for item in items.iter_mut().filter(|item| item.is_null()) {
                    *item = Value::from(0);
                }
                for item in items.iter_mut() {
                    self.integer("uint8", item, 0, i64::from(u8::MAX));
                }
                items
                    .iter()
                    .filter_map(Value::as_u64)
                    .filter_map(|number| u8::try_from(number).ok())
                    .collect()
            }
            other => return self.mismatch(json_type(other), &self.go_type(shape)),
        };
        *value = Value::String(encode_base64(&bytes));
    }

    fn time(&mut self, value: &mut Value, precision: Precision) -> Result<(), Mismatch> {
        let Value::String(text) = &*value else { return Err(self.text(json_type(value), "string")) };
        let time = Timestamp::parse(text, precision).map_err(Mismatch)?;
        *value = if time.is_zero() { Value::Null } else { Value::String(time.format(precision)) };
        Ok(())
    }

    fn int_or_string(&mut self, value: &mut Value) -> Result<(), Mismatch> {
        match value {
            Value::String(_) => Ok(()),
            Value::Number(number) => match number.as_i64().map(i32::try_from) {
                Some(Ok(_)) => Ok(()),
                _ => Err(self.text(&format!("number {number}"), "int32")),
            },
            other => Err(self.text(json_type(other), "int32")),
        }
    }

    fn enter(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }

    fn report_unknown(&mut self) {
        if self.unknown.len() < UNKNOWN_MAX {
            self.unknown.push(format!("unknown field {}", quote(&self.path)));
        }
    }

    fn mismatch(&mut self, found: &str, go_type: &str) {
        let text = self.text(found, go_type).0;
        self.wrong(text);
    }

    fn wrong(&mut self, text: String) {
        self.wrong.get_or_insert(Mismatch(text));
    }

    fn text(&self, found: &str, go_type: &str) -> Mismatch {
        let place = match self.owner {
            Some(owner) => format!("struct field {}.{}", owner.name, self.stack.join(".")),
            None => "value".to_owned(),
        };
        Mismatch(format!("json: cannot unmarshal {found} into Go {place} of type {go_type}"))
    }

    fn go_type(&self, shape: &Shape) -> String {
        match shape {
            Shape::String { go, .. } => go.to_string(),
            Shape::Bool => "bool".to_owned(),
            Shape::Int32 => "int32".to_owned(),
            Shape::Int64 => "int64".to_owned(),
            Shape::Double => "float64".to_owned(),
            Shape::Bytes => "[]uint8".to_owned(),
            Shape::Time => "v1.Time".to_owned(),
            Shape::MicroTime => "v1.MicroTime".to_owned(),
            Shape::Quantity => "resource.Quantity".to_owned(),
            Shape::IntOrString => "intstr.IntOrString".to_owned(),
            Shape::Raw => "runtime.RawExtension".to_owned(),
            Shape::Fields => "v1.FieldsV1".to_owned(),
            Shape::Json => "v1.JSON".to_owned(),
            Shape::Object(id) => self.schema.get(*id).go_name(),
            Shape::List(item) => format!("[]{}", self.go_type(item)),
            // A field that is such a list itself has its Go type in `Field::go`; the others are values of maps.
            Shape::Wrapped(_) => "v1.ExtraValue".to_owned(),
            Shape::Map(item) => format!("map[string]{}", self.go_type(item)),
            Shape::Or(id, Or::Bool) => format!("{}OrBool", self.schema.get(*id).go_name()),
            Shape::Or(id, Or::List) => format!("{}OrArray", self.schema.get(*id).go_name()),
            Shape::Or(id, Or::Strings) => format!("{}OrStringArray", self.schema.get(*id).go_name()),
        }
    }
}

/// A floating point number as Go encodes it: without a fraction if it is integral.
pub(crate) fn double(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}

/// A number is a valid quantity, too.
fn quantity(value: &mut Value) -> Result<(), Mismatch> {
    let refused = |problem: QuantityError| Mismatch(problem.to_string());
    let spelled = match &*value {
        Value::String(text) => match Quantity::respell(text).map_err(refused)? {
            Cow::Borrowed(kept) if kept.len() == text.len() => return Ok(()),
            spelled => spelled.into_owned(),
        },
        Value::Number(number) => Quantity::respell(&number.to_string()).map_err(refused)?.into_owned(),
        _ => return Err(refused(QuantityError::Format)),
    };
    *value = Value::String(spelled);
    Ok(())
}
