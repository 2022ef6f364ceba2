//! Resolution of attributes.

use super::{Run, Slot};
use crate::{
    Error, Result, Str, Value,
    plan::{Attribute, AttributeBase, Qualifier, QualifierKey},
};

/// The result of resolving qualifiers.
enum Resolved<'a> {
    Value(Value<'a>),
    /// The present value of an optional qualifier.
    Optional(Value<'a>),
    /// An optional qualifier found nothing.
    Nothing,
}

impl<'a> Run<'a, '_> {
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let value = self.resolve(attribute);
        // A conditional base costs what its operands cost.
        if !matches!(attribute.base, AttributeBase::Conditional(_)) {
            self.charge(1)?;
        }
        value
    }

    /// Resolves an attribute, without the cost of reading its base.
    fn resolve(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let (base, qualifiers) = match self.computed_field(attribute)? {
            Some(value) => (value, &attribute.qualifiers[1..]),
            None => (self.base(&attribute.base)?, attribute.qualifiers.as_slice()),
        };
        if qualifiers.is_empty() {
            return Ok(base);
        }
        Ok(match self.walk(base, qualifiers)? {
            Resolved::Value(value) => value,
            Resolved::Optional(value) => Value::some(value),
            Resolved::Nothing => Value::Optional(None),
        })
    }

    /// The value of the first qualifier, if it is a lazily computed field.
    fn computed_field(&mut self, attribute: &'a Attribute) -> Result<Option<Value<'a>>> {
        let (AttributeBase::Global(name), Some(Qualifier { key: QualifierKey::Field(field), is_optional })) =
            (&attribute.base, attribute.qualifiers.first())
        else {
            return Ok(None);
        };
        let Some(value) = self.bindings.field(name, field) else { return Ok(None) };
        self.charge(1)?;
        value.map(|value| Some(if *is_optional { Value::some(value) } else { value }))
    }

    fn base(&mut self, base: &'a AttributeBase) -> Result<Value<'a>> {
        match base {
            AttributeBase::Global(name) => {
                let bound = self.bindings.variable(name);
                bound.ok_or_else(|| Error::new(format!("no such attribute(s): {name}")))
            }
            AttributeBase::Local(slot) => self.local(*slot),
            AttributeBase::Node(node) => self.node(node),
            AttributeBase::Conditional(branches) => match self.node(&branches.0)? {
                Value::Bool(true) => self.resolve(&branches.1),
                Value::Bool(false) => self.resolve(&branches.2),
                _ => Err(Error::no_such_overload()),
            },
        }
    }

    fn local(&mut self, slot: usize) -> Result<Value<'a>> {
        match &self.locals[slot] {
            Slot::Ready(value) => value.clone(),
            Slot::Lazy(node) => {
                let node = *node;
                let value = self.node(node);
                self.locals[slot] = Slot::Ready(value.clone());
                value
            }
            Slot::Empty => Err(Error::new("no such attribute(s)")),
        }
    }

    fn walk(&mut self, base: Value<'a>, qualifiers: &'a [Qualifier]) -> Result<Resolved<'a>> {
        let (mut value, mut is_optional) = match base {
            Value::Optional(None) => return Ok(Resolved::Nothing),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            value => (value, false),
        };
        for step in qualifiers {
            is_optional |= step.is_optional;
            let key = match self.key(&step.key) {
                Err(error) if !is_optional && !error.is_cost_limit() => {
                    self.charge(1)?;
                    return Err(error);
                }
                key => key?,
            };
            let next = match look_up(&value, &key) {
                None if is_optional => return Ok(Resolved::Nothing),
                next => next,
            };
            self.charge(1)?;
            value = next.unwrap_or_else(|| Err(missing(&value, &key)))?;
        }
        Ok(if is_optional { Resolved::Optional(value) } else { Resolved::Value(value) })
    }

    /// The value of a qualifier's key.
    fn key(&mut self, key: &'a QualifierKey) -> Result<Value<'a>> {
        match key {
            QualifierKey::Field(name) => Ok(Value::String(Str::Borrowed(name))),
            QualifierKey::Constant(key) => Ok(key.clone()),
            QualifierKey::Attribute(attribute) => self.resolve(attribute),
            QualifierKey::Node(node) => self.node(node),
        }
    }

    /// Whether the last qualifier of an attribute finds a value.
    pub(super) fn test(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let (last, qualifiers) = attribute.qualifiers.split_last().ok_or_else(Error::no_such_overload)?;
        if qualifiers.is_empty() && self.computed_field(attribute)?.is_some() {
            return Ok(Value::Bool(true));
        }
        let base = self.base(&attribute.base)?;
        let (found, is_optional) = match self.walk(base, qualifiers)? {
            Resolved::Nothing | Resolved::Value(Value::Optional(None)) => return Ok(Value::Bool(false)),
            Resolved::Value(Value::Optional(Some(inner))) => (look_up(&inner, &self.key(&last.key)?), true),
            Resolved::Optional(value) => (look_up(&value, &self.key(&last.key)?), true),
            Resolved::Value(value) => (look_up(&value, &self.key(&last.key)?), false),
        };
        // A missing optional value costs nothing.
        if found.is_some() || !is_optional {
            self.charge(1)?;
        }
        match found {
            Some(Err(error)) => Err(error),
            found => Ok(Value::Bool(found.is_some())),
        }
    }
}

/// The error of a qualifier that found nothing.
fn missing(value: &Value<'_>, key: &Value<'_>) -> Error {
    match value {
        Value::List(_) => Error::new(format!("index out of bounds: {key}")),
        _ => Error::no_such_key(key),
    }
}

fn look_up<'a>(value: &Value<'a>, key: &Value<'a>) -> Option<Result<Value<'a>>> {
    match value {
        Value::Map(map) => map.get(key),
        Value::List(list) => match list_index(key) {
            Ok(index) => usize::try_from(index).ok().and_then(|index| list.get(index)),
            Err(error) => Some(Err(error)),
        },
        _ => None,
    }
}

fn list_index(key: &Value<'_>) -> Result<i64> {
    match key {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => Ok(i64::try_from(*index).unwrap_or(-1)),
        Value::Double(index) if index.fract() == 0.0 => Ok(*index as i64),
        Value::Double(index) => Err(Error::new(format!("unsupported index value {index} in list"))),
        _ => Err(Error::new(format!("unsupported index type '{}' in list", key.ty().name()))),
    }
}
