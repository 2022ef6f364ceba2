//! CEL types of objects, derived from their schemas.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::{Declared, Field, ListKind, ObjectType, Type};

use crate::schema::{Schema, Shape, TypeId, builtin};
use crate::structural::rules::{declared_type, escape};
use crate::structural::{Node, Structural};

/// The type of a built-in kind.
pub fn builtin_type(group: &str, version: &str, kind: &str) -> Option<Type> {
    let schema = builtin();
    let id = schema.by_kind(group, version, kind)?;
    let mut types = Types { schema, open: Vec::new() };
    let mut fields = types.fields(id, kind);
    for name in ["apiVersion", "kind"] {
        fields.insert(name.into(), field(name, Declared::scalar(Type::String)));
    }
    Some(Declared::object(ObjectType { name: kind.into(), fields }, 0).ty)
}

/// The type of a custom kind.
pub fn custom_type(structural: &Structural, kind: &str) -> Option<Type> {
    let root: &Node = structural.root();
    declared_type(root, kind)
}

fn field(name: &str, declared: Declared) -> Field {
    Field { json_name: name.into(), declared: Arc::new(declared) }
}

/// Types of the schema table, named by their path.
struct Types<'s> {
    schema: &'s Schema,
    /// The types that enclose the present one: a recursive type becomes dynamic.
    open: Vec<TypeId>,
}

impl Types<'_> {
    fn fields(&mut self, id: TypeId, name: &str) -> BTreeMap<Arc<str>, Field> {
        self.open.push(id);
        let mut fields = BTreeMap::new();
        for of in self.schema.get(id).fields() {
            let Some(known) = escape(&of.name) else { continue };
            if let Some(declared) = self.shape(&of.shape, &format!("{name}.{known}")) {
                fields.insert(Arc::from(&*known), field(&of.name, declared));
            }
        }
        self.open.pop();
        fields
    }

    /// The CEL type of a value; `None` if its schema has no type, which hides the field.
    fn shape(&mut self, shape: &Shape, name: &str) -> Option<Declared> {
        Some(match shape {
            Shape::String { .. } => Declared::scalar(Type::String),
            Shape::Bool => Declared::scalar(Type::Bool),
            Shape::Int32 | Shape::Int64 => Declared::scalar(Type::Int),
            Shape::Double => Declared::scalar(Type::Double),
            Shape::Bytes => Declared::scalar(Type::Bytes),
            Shape::Time | Shape::MicroTime => Declared::scalar(Type::Timestamp),
            Shape::IntOrString => Declared::scalar(Type::Dyn),
            Shape::Quantity | Shape::Json | Shape::Or(..) => return None,
            Shape::Raw | Shape::Fields => object(name, BTreeMap::new()),
            Shape::Object(id) if self.open.contains(id) => Declared::scalar(Type::Dyn),
            Shape::Object(id) => object(name, self.fields(*id, name)),
            Shape::List(item) | Shape::Wrapped(item) => {
                let item = self.shape(item, &format!("{name}.@idx"))?;
                Declared::list(Arc::new(item), 0, ListKind::Atomic)
            }
            Shape::Map(value) => {
                let value = self.shape(value, &format!("{name}.@elem"))?;
                Declared::map(Arc::new(Declared::scalar(Type::String)), Arc::new(value), 0)
            }
        })
    }
}

fn object(name: &str, fields: BTreeMap<Arc<str>, Field>) -> Declared {
    Declared::object(ObjectType { name: name.into(), fields }, 0)
}
