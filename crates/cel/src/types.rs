//! Types of the checker.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::Declared;

/// The name of the opaque type of optional values.
const OPTIONAL: &str = "optional_type";

/// A type of the language.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// The type of a subexpression with an error. It matches every type, so that one mistake is one error.
    Error,
    /// Known only at run time.
    Dyn,
    /// Like `Dyn`: the declared type of a value that a schema leaves open.
    Any,
    /// The type of `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed number of 64 bits.
    Int,
    /// An unsigned number of 64 bits.
    Uint,
    /// A floating-point number of 64 bits.
    Double,
    /// Unicode text.
    String,
    /// A sequence of bytes.
    Bytes,
    /// A span of time.
    Duration,
    /// A point in time.
    Timestamp,
    /// A nullable scalar.
    Wrapper(Arc<Type>),
    /// A list of items of one type.
    List(Arc<Type>),
    /// A map from keys of one type to values of one type.
    Map(Arc<(Type, Type)>),
    /// The type of a type; without a parameter the type of any type.
    Type(Option<Arc<Type>>),
    /// An object with fields, or a library's object without declared fields.
    Object(Arc<ObjectType>),
    /// A type that only functions can inspect.
    Opaque(Arc<OpaqueType>),
    /// A parameter of an overload's signature, such as `T` in `list(T)`.
    Param(&'static str),
    /// A type variable of the checker, for a parameter or an empty literal.
    Variable(u32),
}

/// A type with a name and parameters, opaque to the checker.
#[derive(Clone, Debug, PartialEq)]
pub struct OpaqueType {
    /// The name, such as `net.IP`.
    pub name: Arc<str>,
    /// The parameters.
    pub params: Vec<Type>,
}

/// A type with fields. Types of the same name are equal.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// The name, such as `kubernetes.Quantity`.
    pub name: Arc<str>,
    /// The fields, by the names in expressions.
    pub fields: BTreeMap<Arc<str>, Field>,
}

/// A field of an object type.
#[derive(Clone, Debug)]
pub struct Field {
    /// The JSON name, which may be no identifier.
    pub json_name: Arc<str>,
    /// The declaration of its value.
    pub declared: Arc<Declared>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    /// A list type.
    pub fn list(item: Type) -> Type {
        Type::List(Arc::new(item))
    }

    /// A map type.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// An optional type.
    pub fn optional(inner: Type) -> Type {
        Type::opaque(OPTIONAL, vec![inner])
    }

    /// The type of a type.
    pub fn type_of(inner: Type) -> Type {
        Type::Type(Some(Arc::new(inner)))
    }

    /// A nullable scalar.
    pub fn wrapper(inner: Type) -> Type {
        Type::Wrapper(Arc::new(inner))
    }

    /// An opaque type.
    pub fn opaque(name: &str, params: Vec<Type>) -> Type {
        Type::Opaque(Arc::new(OpaqueType { name: name.into(), params }))
    }

    /// A library's object type without declared fields.
    pub fn object(name: &str) -> Type {
        Type::Object(Arc::new(ObjectType { name: name.into(), fields: BTreeMap::new() }))
    }

    /// The inner type of an optional type.
    pub fn optional_inner(&self) -> Option<&Type> {
        match self {
            Type::Opaque(opaque) if &*opaque.name == OPTIONAL => opaque.params.first(),
            _ => None,
        }
    }

    /// The type parameters.
    pub fn params(&self) -> &[Type] {
        match self {
            Type::List(item) => std::slice::from_ref(item),
            Type::Type(Some(inner)) => std::slice::from_ref(inner),
            Type::Opaque(opaque) => &opaque.params,
            _ => &[],
        }
    }

    /// The name that `type(x)` returns, without parameters.
    pub fn name(&self) -> &str {
        match self {
            Type::Error => "error",
            Type::Dyn => "dyn",
            Type::Any => "google.protobuf.Any",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Wrapper(inner) => inner.name(),
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Type(_) => "type",
            Type::Object(object) => &object.name,
            Type::Opaque(opaque) => &opaque.name,
            Type::Param(name) => name,
            Type::Variable(_) => "type_param",
        }
    }

    /// Whether the checker accepts this type everywhere.
    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    /// Whether all values of the type have one size.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
            Type::Wrapper(inner) => inner.is_scalar(),
            _ => self.optional_inner().is_some_and(Type::is_scalar),
        }
    }
}

/// The type as error messages show it.
impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Error => formatter.write_str("!error!"),
            Type::Any => formatter.write_str("any"),
            Type::Null => formatter.write_str("null"),
            Type::Duration => formatter.write_str("duration"),
            Type::Timestamp => formatter.write_str("timestamp"),
            Type::Wrapper(inner) => write!(formatter, "wrapper({inner})"),
            Type::Variable(number) => write!(formatter, "_var{number}"),
            Type::Map(pair) => write!(formatter, "map({}, {})", pair.0, pair.1),
            _ => {
                formatter.write_str(self.name())?;
                let params = self.params();
                for (index, param) in params.iter().enumerate() {
                    write!(formatter, "{}{param}", if index == 0 { "(" } else { ", " })?;
                }
                if params.is_empty() { Ok(()) } else { formatter.write_str(")") }
            }
        }
    }
}
