//! CEL types and size limits of values, derived from their schemas.

use std::{collections::BTreeMap, sync::Arc};

use cel::{Declared, Field, ListKind, ObjectType, Type};

use super::escape::escape;
use crate::structural::{
    checks::Checks,
    format::Format,
    node::{ListType, Node, ValueType, Values},
};

/// The type name of a rule's value.
pub(super) const SELF_TYPE: &str = "selfType";

/// The largest request, which limits every value.
const MAX_REQUEST_BYTES: i64 = 3 << 20;
/// The longest text that a request can hold, without its quotes.
const MAX_TEXT: i64 = MAX_REQUEST_BYTES - 2;

/// A schema as a CEL type.
pub(super) struct Typed {
    /// The name of the type, or of the object type at this path.
    pub name: Box<str>,
    pub declared: Arc<Declared>,
    /// The smallest size of a value in bytes of JSON.
    pub min_size: i64,
    /// The fields of an object by their JSON names, without those that expressions cannot name.
    pub fields: BTreeMap<Box<str>, Typed>,
    /// The items of a list or the values of a map.
    pub item: Option<Box<Typed>>,
}

impl Typed {
    fn leaf(declared: Declared, min_size: i64) -> Self {
        Self { name: "".into(), declared: Arc::new(declared), min_size, fields: BTreeMap::new(), item: None }
    }

    /// The most values of this type in a request.
    pub fn cardinality(&self) -> u64 {
        // With a comma between two of them.
        (MAX_REQUEST_BYTES / (self.min_size + 1)).unsigned_abs()
    }
}

/// The type of a value; `None` if expressions cannot see it. `is_resource` adds kind, version and metadata; `name`
/// names an object's type.
pub(super) fn declare(node: &Node, is_resource: bool, name: &str) -> Option<Typed> {
    let typed = declare_unnamed(node, is_resource, name)?;
    Some(Typed { name: name.into(), ..typed })
}

/// The named type of the objects of a schema.
pub(crate) fn declared_type(root: &Node, name: &str) -> Option<Type> {
    declare(root, true, name).map(|typed| typed.declared.ty.clone())
}

fn declare_unnamed(node: &Node, is_resource: bool, name: &str) -> Option<Typed> {
    if node.int_or_string {
        let max = limit(node, |checks| checks.max_length).map_or(MAX_TEXT, |length| length * 4);
        return Some(Typed::leaf(Declared::sized(Type::Dyn, max.unsigned_abs()), 1));
    }
    match node.kind? {
        ValueType::Boolean => Some(Typed::leaf(Declared::scalar(Type::Bool), 4)),
        ValueType::Number => Some(Typed::leaf(Declared::scalar(Type::Double), 1)),
        ValueType::Integer => Some(Typed::leaf(Declared::scalar(Type::Int), 1)),
        ValueType::String => Some(text(node)),
        ValueType::Array => list(node, name),
        ValueType::Object => match &node.values {
            Values::Of(values) => map(node, values, name),
            _ => Some(object(node, is_resource, name)),
        },
    }
}

/// A limit of the schema, at least zero.
fn limit(node: &Node, of: impl Fn(&Checks) -> Option<i64>) -> Option<i64> {
    node.checks.as_deref().and_then(of).map(|limit| limit.clamp(0, i64::MAX / 4))
}

fn text(node: &Node) -> Typed {
    let format = node.checks.as_deref().and_then(|checks| checks.format.as_ref()).map(Format::name);
    let max_length = limit(node, |checks| checks.max_length);
    let (ty, max, min_size) = match format {
        Some("byte") => (Type::Bytes, max_length.unwrap_or(MAX_TEXT), 2),
        Some("duration") => (Type::Duration, 32, 3),
        Some("date") => (Type::Timestamp, 12, 12),
        Some("date-time") => (Type::Timestamp, 32, 21),
        _ => {
            // A character has at most four bytes.
            let max = max_length.map(|length| length * 4).or_else(|| longest_value(node));
            (Type::String, max.unwrap_or(MAX_TEXT), 2)
        }
    };
    Typed::leaf(Declared::sized(ty, max.unsigned_abs()), min_size)
}

/// The length of the longest enum value.
fn longest_value(node: &Node) -> Option<i64> {
    let values = &node.checks.as_deref()?.values;
    let lengths = values.iter().map(|value| value.as_str().map_or(0, str::len));
    lengths.max().map(|length| i64::try_from(length).unwrap_or(MAX_TEXT))
}

fn list(node: &Node, name: &str) -> Option<Typed> {
    let items = node.items.as_deref()?;
    let item = declare(items, items.embedded, &format!("{name}.@idx"))?;
    let most = (MAX_REQUEST_BYTES - 2) / (item.min_size + 1);
    let max = limit(node, |checks| checks.max_items).unwrap_or(most);
    let kind = match &node.list_type {
        ListType::Set => ListKind::Set,
        ListType::Map(keys) => ListKind::Map(keys.iter().map(|key| (**key).into()).collect()),
        ListType::Atomic | ListType::Unset => ListKind::Atomic,
    };
    let declared = Declared::list(Arc::clone(&item.declared), max.unsigned_abs(), kind);
    Some(Typed { item: Some(Box::new(item)), ..Typed::leaf(declared, 2) })
}

fn map(node: &Node, values: &Node, name: &str) -> Option<Typed> {
    let item = declare(values, values.embedded, &format!("{name}.@elem"))?;
    // A key, its quotes, a colon and a comma take six bytes.
    let most = (MAX_REQUEST_BYTES - 2) / (item.min_size + 6);
    let max = limit(node, |checks| checks.max_properties).unwrap_or(most);
    let key = Arc::new(Declared::scalar(Type::String));
    let declared = Declared::map(key, Arc::clone(&item.declared), max.unsigned_abs());
    Some(Typed { item: Some(Box::new(item)), ..Typed::leaf(declared, 2) })
}

fn object(node: &Node, is_resource: bool, name: &str) -> Typed {
    let mut object = Object { name, fields: BTreeMap::new(), typed: BTreeMap::new(), min_size: 2 };
    let is_required = |field: &str| {
        node.checks.as_deref().is_some_and(|checks| checks.required.iter().any(|name| **name == *field))
    };
    let has_own = is_resource && !has_resource_fields(node);
    for (field, of) in &node.fields {
        if has_own && matches!(&**field, "kind" | "apiVersion" | "metadata") {
            continue;
        }
        object.add(field, of, is_required(field));
    }
    if has_own {
        let text = || Node { kind: Some(ValueType::String), ..Node::default() };
        for field in ["apiVersion", "kind"] {
            object.add(field, &text(), is_required(field));
        }
        let fields = ["generateName", "name"].map(|name| (name.into(), text()));
        let metadata = Node { kind: Some(ValueType::Object), fields: fields.into(), ..Node::default() };
        object.add("metadata", &metadata, is_required("metadata"));
    }
    let ty = ObjectType { name: name.into(), fields: object.fields };
    Typed { fields: object.typed, ..Typed::leaf(Declared::object(ty, 0), object.min_size) }
}

/// Whether the schema of a resource specifies kind, version or metadata itself.
fn has_resource_fields(node: &Node) -> bool {
    let is_text =
        |node: &Node, name| node.field(name).is_some_and(|field| field.kind == Some(ValueType::String));
    let metadata = node.field("metadata").filter(|metadata| metadata.kind == Some(ValueType::Object));
    is_text(node, "kind")
        && is_text(node, "apiVersion")
        && metadata.is_some_and(|metadata| is_text(metadata, "name") && is_text(metadata, "generateName"))
}

/// The fields of an object while they are collected.
struct Object<'n> {
    name: &'n str,
    fields: BTreeMap<Arc<str>, Field>,
    typed: BTreeMap<Box<str>, Typed>,
    min_size: i64,
}

impl Object<'_> {
    fn add(&mut self, field: &str, node: &Node, is_required: bool) {
        let escaped = escape(field);
        let name = format!("{}.{}", self.name, escaped.as_deref().unwrap_or(field));
        let Some(typed) = declare(node, node.embedded, &name) else { return };
        if is_required && node.default.is_none() {
            // Quotes, a colon and a comma.
            let len = i64::try_from(field.len()).unwrap_or(MAX_TEXT);
            self.min_size = self.min_size.saturating_add(len + typed.min_size + 4);
        }
        if let Some(escaped) = escaped {
            let declared = Arc::clone(&typed.declared);
            self.fields.insert((*escaped).into(), Field { json_name: field.into(), declared });
            self.typed.insert(field.into(), typed);
        }
    }
}
