//! Values, which borrow from the object and the program if possible.

mod compare;
mod json;
mod list;
mod map;
mod text;

use std::{any::Any, fmt, sync::Arc};

pub use self::{
    list::List,
    map::{Key, Map},
    text::Str,
};
use crate::{
    Error, Result, Type,
    time::{Duration, Timestamp},
};

/// A value of the language.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Str<'a>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A duration.
    Duration(Duration),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map, or an object with fields.
    Map(Map<'a>),
    /// A type.
    Type(Type),
    /// An optional value.
    Optional(Option<Arc<Value<'a>>>),
    /// A value of a library's type.
    Opaque(Arc<dyn Opaque>),
}

/// A value that only the functions of its library can inspect.
pub trait Opaque: Any + fmt::Debug + Send + Sync {
    /// The type that its functions declare.
    fn ty(&self) -> Type;

    /// Whether it equals another value of any type.
    fn equals(&self, other: &dyn Opaque) -> bool;

    /// The size for costs, if it has one.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Whether `optional.ofNonZeroValue` treats it as zero.
    fn is_zero(&self) -> bool {
        false
    }
}

impl<'a> Value<'a> {
    /// A list value.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Value::List(List::Owned(Arc::new(items)))
    }

    /// A string value.
    pub fn string(text: impl Into<Str<'a>>) -> Self {
        Value::String(text.into())
    }

    /// An opaque value.
    pub fn opaque(value: impl Opaque) -> Self {
        Value::Opaque(Arc::new(value))
    }

    /// A present optional value.
    pub fn some(value: Value<'a>) -> Self {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The string, or an error for another type.
    pub fn as_str(&self) -> Result<&str> {
        match self {
            Value::String(text) => Ok(text),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The signed integer, or an error for another type.
    pub fn as_int(&self) -> Result<i64> {
        match self {
            Value::Int(number) => Ok(*number),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The boolean, or an error for another type.
    pub fn as_bool(&self) -> Result<bool> {
        match self {
            Value::Bool(value) => Ok(*value),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The list, or an error for another type.
    pub fn as_list(&self) -> Result<&List<'a>> {
        match self {
            Value::List(list) => Ok(list),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The map, or an error for another type.
    pub fn as_map(&self) -> Result<&Map<'a>> {
        match self {
            Value::Map(map) => Ok(map),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The library's value, or an error for another type.
    pub fn as_opaque<T: Opaque>(&self) -> Result<&T> {
        match self {
            Value::Opaque(value) => {
                let any: &dyn Any = &**value;
                any.downcast_ref().ok_or_else(Error::no_such_overload)
            }
            _ => Err(Error::no_such_overload()),
        }
    }

    /// The run-time type, without the types of items and entries.
    pub fn ty(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Duration(_) => Type::Duration,
            Value::Timestamp(_) => Type::Timestamp,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Type(_) => Type::Type(None),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Opaque(value) => value.ty(),
        }
    }

    /// Whether the value can be passed to a parameter of this type. Items and entries are not checked.
    pub(crate) fn fits(&self, ty: &Type) -> bool {
        match (ty, self) {
            (Type::Dyn | Type::Param(_) | Type::Variable(_) | Type::Error, _) => true,
            (Type::Wrapper(_), Value::Null) => true,
            (Type::Wrapper(inner), _) => self.fits(inner),
            (Type::Null, Value::Null)
            | (Type::Bool, Value::Bool(_))
            | (Type::Int, Value::Int(_))
            | (Type::Uint, Value::Uint(_))
            | (Type::Double, Value::Double(_))
            | (Type::String, Value::String(_))
            | (Type::Bytes, Value::Bytes(_))
            | (Type::Duration, Value::Duration(_))
            | (Type::Timestamp, Value::Timestamp(_))
            | (Type::List(_), Value::List(_))
            | (Type::Map(_) | Type::Object(_), Value::Map(_))
            | (Type::Type(_), Value::Type(_)) => true,
            (_, Value::Optional(_)) => ty.optional_inner().is_some(),
            (Type::Object(_) | Type::Opaque(_), Value::Opaque(value)) => value.ty().name() == ty.name(),
            _ => false,
        }
    }

    /// Whether it is the zero value of its type.
    pub fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(number) => *number == 0,
            Value::Uint(number) => *number == 0,
            Value::Double(number) => *number == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Duration(span) => span.nanos == 0,
            Value::List(list) => list.is_empty(),
            Value::Map(map) => map.is_empty(),
            Value::Opaque(value) => value.is_zero(),
            Value::Timestamp(_) | Value::Type(_) | Value::Optional(_) => false,
        }
    }

    /// The size for costs: characters, bytes, items or entries; one for everything else.
    pub fn cost_size(&self) -> u64 {
        match self {
            Value::String(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Opaque(value) => value.size().unwrap_or(1),
            Value::Optional(Some(inner)) => inner.cost_size(),
            _ => 1,
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::String(Str::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::String(text.into())
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Double(number)
    }
}
