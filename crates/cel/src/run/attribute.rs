//! Ways into values.

use super::{Run, Slot};
use crate::{
    Error, Result, Str, Value,
    plan::{Attribute, Base, Step, StepKey},
};

/// Where a way has led.
enum Reached<'a> {
    Value(Value<'a>),
    /// To something that may be missing, and is there.
    Optional(Value<'a>),
    /// To nothing, which is allowed.
    Nothing,
}

impl<'a> Run<'a, '_> {
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let value = self.resolve(attribute);
        // A condition costs what its parts cost.
        if !matches!(attribute.base, Base::Conditional(_)) {
            self.charge(1)?;
        }
        value
    }

    /// The value at the end of a way, without what reading its beginning costs.
    fn resolve(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let (base, steps) = match self.computed_field(attribute)? {
            Some(value) => (value, &attribute.steps[1..]),
            None => (self.base(&attribute.base)?, attribute.steps.as_slice()),
        };
        if steps.is_empty() {
            return Ok(base);
        }
        Ok(match self.walk(base, steps)? {
            Reached::Value(value) => value,
            Reached::Optional(value) => Value::some(value),
            Reached::Nothing => Value::Optional(None),
        })
    }

    /// The value of the first step, if that is a field that is computed when it is asked for.
    fn computed_field(&mut self, attribute: &'a Attribute) -> Result<Option<Value<'a>>> {
        let (Base::Global(name), Some(Step { key: StepKey::Field(field), is_optional })) =
            (&attribute.base, attribute.steps.first())
        else {
            return Ok(None);
        };
        let Some(value) = self.bindings.field(name, field) else { return Ok(None) };
        self.charge(1)?;
        value.map(|value| Some(if *is_optional { Value::some(value) } else { value }))
    }

    fn base(&mut self, base: &'a Base) -> Result<Value<'a>> {
        match base {
            Base::Global(name) => {
                let bound = self.bindings.variable(name);
                bound.ok_or_else(|| Error::new(format!("no such attribute(s): {name}")))
            }
            Base::Local(slot) => self.local(*slot),
            Base::Node(node) => self.node(node),
            Base::Conditional(branches) => match self.node(&branches.0)? {
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

    fn walk(&mut self, base: Value<'a>, steps: &'a [Step]) -> Result<Reached<'a>> {
        let (mut value, mut is_optional) = match base {
            Value::Optional(None) => return Ok(Reached::Nothing),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            value => (value, false),
        };
        for step in steps {
            is_optional |= step.is_optional;
            let key = match self.key(&step.key) {
                Err(error) if !is_optional && !error.is_cost_limit() => {
                    self.charge(1)?;
                    return Err(error);
                }
                key => key?,
            };
            let next = match look_up(&value, &key) {
                None if is_optional => return Ok(Reached::Nothing),
                next => next,
            };
            self.charge(1)?;
            value = next.unwrap_or_else(|| Err(missing(&value, &key)))?;
        }
        Ok(if is_optional { Reached::Optional(value) } else { Reached::Value(value) })
    }

    /// What a step looks for.
    fn key(&mut self, key: &'a StepKey) -> Result<Value<'a>> {
        match key {
            StepKey::Field(name) => Ok(Value::String(Str::Borrowed(name))),
            StepKey::Constant(key) => Ok(key.clone()),
            StepKey::Attribute(attribute) => self.resolve(attribute),
            StepKey::Node(node) => self.node(node),
        }
    }

    /// Whether the last step of a way leads to something.
    pub(super) fn test(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let (last, steps) = attribute.steps.split_last().ok_or_else(Error::no_such_overload)?;
        if steps.is_empty() && self.computed_field(attribute)?.is_some() {
            return Ok(Value::Bool(true));
        }
        let base = self.base(&attribute.base)?;
        let (found, is_optional) = match self.walk(base, steps)? {
            Reached::Nothing | Reached::Value(Value::Optional(None)) => return Ok(Value::Bool(false)),
            Reached::Value(Value::Optional(Some(inner))) => (look_up(&inner, &self.key(&last.key)?), true),
            Reached::Optional(value) => (look_up(&value, &self.key(&last.key)?), true),
            Reached::Value(value) => (look_up(&value, &self.key(&last.key)?), false),
        };
        // What may be missing, and is, costs nothing.
        if found.is_some() || !is_optional {
            self.charge(1)?;
        }
        match found {
            Some(Err(error)) => Err(error),
            found => Ok(Value::Bool(found.is_some())),
        }
    }
}

/// The error of a step that led to nothing.
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
