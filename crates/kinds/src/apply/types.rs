//! The schema view of apply: which fields are owned one by one, and which structs, maps and lists are atomic.
//!
//! A [`Node`] is a place in the schema of a kind. The walks do not depend on the source of the schema.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use super::element::Element;
use crate::schema::{Field, ListKind, Name, Schema, Shape, Type, TypeId, builtin};
use crate::structural::{ListType, Node as Custom, ValueType, Values};

/// A place in a schema.
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    /// A struct of the table of types.
    Type(&'a Schema, TypeId, Option<&'a ListKind>),
    /// A value of the table of types.
    Shape(&'a Schema, &'a Shape, Option<&'a ListKind>),
    /// A value of a custom resource; whether its schema or an outer one preserves unknown fields; whether it is an
    /// embedded object with kind, version and metadata.
    Custom(&'a Custom, bool, bool),
    /// A value without a schema: entries of maps are owned one by one, lists as a whole.
    Deduced,
    /// A value without a schema that is owned as a whole.
    Untyped,
}

/// The allowed types of a value; few places allow more than one.
#[derive(Clone, Copy, Default)]
pub(super) struct Atom<'a> {
    pub scalar: Option<Scalar>,
    pub list: Option<List<'a>>,
    pub map: Option<Mapping<'a>>,
}

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Number,
    Text,
    Bool,
    Any,
}

/// The ownership of a list.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub relation: Relation<'a>,
    pub item: Node<'a>,
}

/// The identity of the items of a list.
#[derive(Clone, Copy)]
pub(super) enum Relation<'a> {
    Atomic,
    Set,
    Keys(Keys<'a>),
}

/// The names of the key fields of an item.
#[derive(Clone, Copy)]
pub(super) enum Keys<'a> {
    OfType(&'a [Name]),
    OfCustom(&'a [Box<str>]),
}

impl<'a> Keys<'a> {
    fn names(self) -> impl Iterator<Item = &'a str> {
        let (of_type, of_custom): (&'a [Name], &'a [Box<str>]) = match self {
            Self::OfType(names) => (names, &[]),
            Self::OfCustom(names) => (&[], names),
        };
        of_type.iter().map(|name| &**name).chain(of_custom.iter().map(|name| &**name))
    }
}

/// The ownership of a struct or map.
#[derive(Clone, Copy)]
pub(super) struct Mapping<'a> {
    pub atomic: bool,
    fields: Fields<'a>,
    entry: Option<Node<'a>>,
}

/// The named fields of a struct.
#[derive(Clone, Copy)]
enum Fields<'a> {
    None,
    Type(&'a Schema, &'a Type),
    /// As in [`Node::Custom`].
    Custom(&'a Custom, bool, bool),
}

/// The alternative of an [`Atom`] that a value has.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    Scalar(Scalar),
    List(List<'a>),
    Map(Mapping<'a>),
}

impl<'a> Node<'a> {
    /// The root of a kind of the table.
    pub fn of_type(schema: &'a Schema, id: TypeId) -> Self {
        Self::Type(schema, id, None)
    }

    /// The root of a custom resource with a schema.
    pub fn of_custom(schema: &'a Custom, preserves_unknown_fields: bool) -> Self {
        Self::Custom(schema, preserves_unknown_fields, true)
    }

    pub(super) fn resolve(self) -> Atom<'a> {
        match self {
            Self::Custom(node, keeps, is_object) => of_custom(node, keeps, is_object),
            Self::Type(schema, id, owner) => Atom::map(struct_of(schema, id, owner)),
            Self::Shape(schema, shape, owner) => of_shape(schema, shape, owner),
            Self::Deduced => deduced(Mapping::of_entries(false, Node::Deduced)),
            Self::Untyped => deduced(Mapping::of_entries(true, Node::Untyped)),
        }
    }

    /// The form of a value at this place; for a value that fits none, the form that it should have.
    pub(super) fn form(self, value: &Value) -> Form<'a> {
        let atom = self.resolve();
        match (value, atom.scalar, atom.list, atom.map) {
            (Value::Array(_), _, Some(list), _) => Form::List(list),
            (Value::Object(_), _, _, Some(map)) => Form::Map(map),
            (Value::Bool(_) | Value::Number(_) | Value::String(_), Some(scalar), _, _) => {
                Form::Scalar(scalar)
            }
            (_, _, _, Some(map)) => Form::Map(map),
            (_, Some(scalar), _, _) => Form::Scalar(scalar),
            (_, None, Some(list), None) => Form::List(list),
            (_, None, None, None) => Form::Scalar(Scalar::Any),
        }
    }
}

impl<'a> Atom<'a> {
    fn map(map: Mapping<'a>) -> Self {
        Self { map: Some(map), ..Self::default() }
    }

    fn scalar(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), ..Self::default() }
    }
}

fn deduced(map: Mapping<'_>) -> Atom<'_> {
    let list = List { relation: Relation::Atomic, item: Node::Untyped };
    Atom { scalar: Some(Scalar::Any), list: Some(list), map: Some(map) }
}

fn struct_of<'a>(schema: &'a Schema, id: TypeId, owner: Option<&ListKind>) -> Mapping<'a> {
    let of = schema.get(id);
    let atomic = match owner {
        Some(ListKind::Granular) => false,
        Some(ListKind::Atomic) => true,
        _ => of.atomic,
    };
    let entry = of.fields().is_empty().then_some(Node::Deduced);
    Mapping { atomic, fields: Fields::Type(schema, of), entry }
}

fn of_shape<'a>(schema: &'a Schema, shape: &'a Shape, owner: Option<&'a ListKind>) -> Atom<'a> {
    match shape {
        Shape::String { .. } | Shape::Bytes => Atom::scalar(Scalar::Text),
        Shape::Bool => Atom::scalar(Scalar::Bool),
        Shape::Int32 | Shape::Int64 | Shape::Double => Atom::scalar(Scalar::Number),
        Shape::Time | Shape::MicroTime | Shape::Quantity => Atom::scalar(Scalar::Any),
        Shape::IntOrString | Shape::Json | Shape::Or(..) => Node::Deduced.resolve(),
        Shape::Raw => Node::Untyped.resolve(),
        Shape::Fields => Atom::map(Mapping::of_entries(false, Node::Deduced)),
        Shape::Object(id) => Atom::map(struct_of(schema, *id, owner)),
        Shape::List(item) | Shape::Wrapped(item) => {
            let relation = match owner {
                Some(ListKind::Set) => Relation::Set,
                Some(ListKind::Map(keys)) => Relation::Keys(Keys::OfType(keys)),
                _ => Relation::Atomic,
            };
            let list = List { relation, item: Node::Shape(schema, item, None) };
            Atom { list: Some(list), ..Atom::default() }
        }
        Shape::Map(entry) => {
            let atomic = matches!(owner, Some(ListKind::Atomic));
            Atom::map(Mapping::of_entries(atomic, Node::Shape(schema, entry, None)))
        }
    }
}

fn of_field<'a>(schema: &'a Schema, field: &'a Field) -> Node<'a> {
    Node::Shape(schema, &field.shape, field.list.as_ref())
}

/// The fields of every object with kind and version, whatever its schema.
fn of_every_object<'a>(name: &str) -> Option<Node<'a>> {
    static KIND: LazyLock<Option<TypeId>> = LazyLock::new(|| builtin().by_kind("", "v1", "ConfigMap"));
    let of = builtin().get((*KIND)?);
    let is_one = matches!(name, "apiVersion" | "kind" | "metadata");
    of.field(name).filter(|_| is_one).map(|field| of_field(builtin(), field))
}

fn of_custom(node: &Custom, keeps: bool, is_object: bool) -> Atom<'_> {
    let keeps = keeps || node.preserve_unknown;
    let map = || {
        let entry = match &node.values {
            Values::Of(values) => Some(Node::Custom(values, keeps, values.embedded)),
            Values::Any => Some(Node::Deduced),
            Values::Closed if keeps || (node.fields.is_empty() && !is_object) => Some(Node::Deduced),
            Values::Closed | Values::Forbidden => None,
        };
        Mapping { atomic: node.atomic_map, fields: Fields::Custom(node, keeps, is_object), entry }
    };
    let list = || {
        let relation = match &node.list_type {
            ListType::Unset | ListType::Atomic => Relation::Atomic,
            ListType::Set => Relation::Set,
            ListType::Map(keys) => Relation::Keys(Keys::OfCustom(keys)),
        };
        let item = node.items.as_deref();
        let item = item.map_or(Node::Untyped, |item| Node::Custom(item, keeps, item.embedded));
        List { relation, item }
    };
    let has_format = || node.checks.as_ref().is_some_and(|checks| checks.format.is_some());
    match node.kind {
        None => Atom { scalar: Some(Scalar::Any), list: Some(list()), map: Some(map()) },
        Some(ValueType::Object) => Atom::map(map()),
        Some(ValueType::Array) => Atom { list: Some(list()), ..Atom::default() },
        Some(ValueType::Integer | ValueType::Number) => Atom::scalar(Scalar::Number),
        Some(ValueType::Boolean) => Atom::scalar(Scalar::Bool),
        Some(ValueType::String) if has_format() => Atom::scalar(Scalar::Any),
        Some(ValueType::String) => Atom::scalar(Scalar::Text),
    }
}

impl<'a> Mapping<'a> {
    fn of_entries(atomic: bool, entry: Node<'a>) -> Self {
        Self { atomic, fields: Fields::None, entry: Some(entry) }
    }

    /// The place of a named field of the type.
    pub fn field(&self, name: &str) -> Option<Node<'a>> {
        match self.fields {
            Fields::None => None,
            Fields::Type(schema, of) => of.field(name).map(|field| of_field(schema, field)),
            Fields::Custom(node, keeps, is_object) => {
                let own = if is_object { of_every_object(name) } else { None };
                own.or_else(|| node.field(name).map(|field| Node::Custom(field, keeps, field.embedded)))
            }
        }
    }

    /// The place of a field or entry; `None` if no such field is allowed.
    pub fn child(&self, name: &str) -> Option<Node<'a>> {
        self.field(name).or(self.entry)
    }

    /// Whether nothing is known of its entries.
    pub fn is_deduced(&self) -> bool {
        let has_fields = match self.fields {
            Fields::None => false,
            Fields::Type(_, of) => !of.fields().is_empty(),
            Fields::Custom(node, _, is_object) => is_object || !node.fields.is_empty(),
        };
        !has_fields && matches!(self.entry, Some(Node::Deduced | Node::Untyped))
    }

    /// The default that the schema publishes for a field; a field that Go always encodes has an empty one.
    fn default_of(&self, name: &str) -> Option<Value> {
        let field = match self.fields {
            Fields::None => return None,
            Fields::Type(_, of) => of.field(name)?,
            Fields::Custom(node, ..) => return node.field(name)?.default.as_deref().cloned(),
        };
        match (&field.default, &field.shape) {
            (Some(default), _) => serde_json::from_str(default).ok(),
            (None, _) if field.pointer || !field.written => None,
            (None, Shape::String { .. }) => Some(Value::from("")),
            (None, Shape::Int32 | Shape::Int64) => Some(Value::from(0)),
            (None, _) => None,
        }
    }
}

impl<'a> List<'a> {
    /// The path element of an item.
    ///
    /// # Errors
    /// The reason why the item has no key.
    pub fn element<'v>(&self, item: &'v Value) -> Result<Element<'v>, String>
    where
        'a: 'v,
    {
        match self.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Relation::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(Element::Value(Cow::Borrowed(scalar))),
            },
            Relation::Keys(keys) => self.key(keys, item),
        }
    }

    fn key<'v>(&self, keys: Keys<'a>, item: &'v Value) -> Result<Element<'v>, String>
    where
        'a: 'v,
    {
        let fields = match item {
            Value::Null => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            Value::Object(fields) => fields,
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let value_of = |name: &'a str| match fields.get(name) {
            Some(value) => Some((Cow::Borrowed(name), Cow::Borrowed(value))),
            None => {
                let default = self.item.resolve().map.and_then(|map| map.default_of(name))?;
                Some((Cow::Borrowed(name), Cow::Owned(default)))
            }
        };
        let mut key: Vec<(Cow<'v, str>, Cow<'v, Value>)> = keys.names().filter_map(value_of).collect();
        if key.is_empty() {
            let names: Vec<String> = keys.names().map(model::error::quote).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        key.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(key.into()))
    }
}
