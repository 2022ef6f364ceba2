//! How the parts of a type are owned: one by one, or as a whole.
//!
//! A [`Node`] is a place in the schema of a kind. Where the schema comes from does not matter to the walks.

use std::borrow::Cow;

use serde_json::Value;

use super::element::Element;
use crate::schema::{Field, ListKind, Name, Schema, Shape, Type, TypeId};

/// A place in a schema.
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    /// A struct of the table of types.
    Type(&'a Schema, TypeId, Option<&'a ListKind>),
    /// A value of the table of types.
    Shape(&'a Schema, &'a Shape, Option<&'a ListKind>),
    /// Whatever the value shows: entries of maps are owned one by one, lists as a whole.
    Deduced,
    /// Whatever the value shows, owned as a whole.
    Untyped,
}

/// What a value may be at a place; few places allow more than one.
#[derive(Clone, Copy, Default)]
pub(super) struct Atom<'a> {
    pub scalar: Option<Scalar>,
    pub list: Option<List<'a>>,
    pub map: Option<Mapping<'a>>,
}

/// What a scalar must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Number,
    Text,
    Bool,
    Any,
}

/// How a list is owned.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub relation: Relation<'a>,
    pub item: Node<'a>,
}

/// What identifies an item of a list.
#[derive(Clone, Copy)]
pub(super) enum Relation<'a> {
    Atomic,
    Set,
    Keys(&'a [Name]),
}

/// How a struct or map is owned.
#[derive(Clone, Copy)]
pub(super) struct Mapping<'a> {
    pub atomic: bool,
    fields: Option<(&'a Schema, &'a Type)>,
    entry: Option<Node<'a>>,
}

/// The one of the forms of an atom that a value has.
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

    pub(super) fn resolve(self) -> Atom<'a> {
        match self {
            Self::Type(schema, id, owner) => Atom::map(struct_of(schema, id, owner)),
            Self::Shape(schema, shape, owner) => of_shape(schema, shape, owner),
            Self::Deduced => deduced(Mapping { atomic: false, fields: None, entry: Some(Node::Deduced) }),
            Self::Untyped => deduced(Mapping { atomic: true, fields: None, entry: Some(Node::Untyped) }),
        }
    }

    /// The form that a value has at this place; of one that fits none, the form that it should have.
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
    Mapping { atomic, fields: Some((schema, of)), entry }
}

fn of_shape<'a>(schema: &'a Schema, shape: &'a Shape, owner: Option<&'a ListKind>) -> Atom<'a> {
    match shape {
        Shape::String { .. } | Shape::Bytes => Atom::scalar(Scalar::Text),
        Shape::Bool => Atom::scalar(Scalar::Bool),
        Shape::Int32 | Shape::Int64 | Shape::Double => Atom::scalar(Scalar::Number),
        Shape::Time | Shape::MicroTime | Shape::Quantity => Atom::scalar(Scalar::Any),
        Shape::IntOrString | Shape::Json | Shape::Or(..) => Node::Deduced.resolve(),
        Shape::Raw => Node::Untyped.resolve(),
        Shape::Fields => Atom::map(Mapping { atomic: false, fields: None, entry: Some(Node::Deduced) }),
        Shape::Object(id) => Atom::map(struct_of(schema, *id, owner)),
        Shape::List(item) | Shape::Wrapped(item) => {
            let relation = match owner {
                Some(ListKind::Set) => Relation::Set,
                Some(ListKind::Map(keys)) => Relation::Keys(keys),
                _ => Relation::Atomic,
            };
            let list = List { relation, item: Node::Shape(schema, item, None) };
            Atom { list: Some(list), ..Atom::default() }
        }
        Shape::Map(entry) => {
            let atomic = matches!(owner, Some(ListKind::Atomic));
            Atom::map(Mapping { atomic, fields: None, entry: Some(Node::Shape(schema, entry, None)) })
        }
    }
}

impl<'a> Mapping<'a> {
    fn declared(&self, name: &str) -> Option<(&'a Schema, &'a Field)> {
        self.fields.and_then(|(schema, of)| Some((schema, of.field(name)?)))
    }

    /// The place of a field that the type has by name.
    pub fn field(&self, name: &str) -> Option<Node<'a>> {
        let (schema, field) = self.declared(name)?;
        Some(Node::Shape(schema, &field.shape, field.list.as_ref()))
    }

    /// The place of a field or entry; `None` where there may be none of this name.
    pub fn child(&self, name: &str) -> Option<Node<'a>> {
        self.field(name).or(self.entry)
    }

    /// Whether there is nothing known of its entries.
    pub fn is_deduced(&self) -> bool {
        self.fields.is_none() && matches!(self.entry, Some(Node::Deduced | Node::Untyped))
    }

    /// The default that the schema publishes for a field.
    fn default_of(&self, name: &str) -> Option<Value> {
        let (_, field) = self.declared(name)?;
        serde_json::from_str(field.default.as_deref()?).ok()
    }
}

impl<'a> List<'a> {
    /// What identifies an item.
    ///
    /// # Errors
    /// Nothing does, for this reason.
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

    fn key<'v>(&self, keys: &'a [Name], item: &'v Value) -> Result<Element<'v>, String>
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
        let value_of = |name: &'a Name| match fields.get(&**name) {
            Some(value) => Some((Cow::Borrowed(&**name), Cow::Borrowed(value))),
            None => {
                let default = self.item.resolve().map.and_then(|map| map.default_of(name))?;
                Some((Cow::Borrowed(&**name), Cow::Owned(default)))
            }
        };
        let mut key: Vec<(Cow<'v, str>, Cow<'v, Value>)> = keys.iter().filter_map(value_of).collect();
        if key.is_empty() {
            let names: Vec<String> = keys.iter().map(|name| crate::error::quote(name)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        key.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(key.into()))
    }
}
