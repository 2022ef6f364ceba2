//! Evaluation of comprehensions.

use std::sync::Arc;

use super::{Run, Slot};
use crate::{
    Error, List, Map, Result, Value,
    library::insert_entry,
    plan::{Bind, Fold, Grow, More},
};

impl<'a> Run<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Result<Value<'a>> {
        let range = self.node(&fold.range)?;
        self.locals[fold.accumulator] = Slot::Lazy(&fold.init);
        match &range {
            Value::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    let (first, second) = match fold.second {
                        Some(_) => (Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))), Some(item)),
                        None => (item, None),
                    };
                    if !self.round(fold, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let second = fold.second.map(|_| map.require(&key));
                    if !self.round(fold, Ok(key), second)? {
                        break;
                    }
                }
            }
            _ => return Err(Error::new(format!("got '{}', expected iterable type", host_name(&range)))),
        }
        self.locals[fold.first] = Slot::Empty;
        let result = self.node(&fold.result);
        self.locals[fold.accumulator] = Slot::Empty;
        result
    }

    pub(super) fn bind(&mut self, bind: &'a Bind) -> Result<Value<'a>> {
        self.locals[bind.slot] = Slot::Lazy(&bind.init);
        self.node(&bind.result)
    }

    /// Appends to the accumulator, with the cost and errors of the equivalent function call. The accumulator
    /// is moved out of its slot, so that it can be changed in place; the iteration stores the result.
    pub(super) fn grow(&mut self, grow: &'a Grow) -> Result<Value<'a>> {
        self.charge(1)?;
        match &grow.more {
            More::Item(node, cost) => {
                let item = self.node(node);
                let item = self.made(item, *cost);
                if item.as_ref().is_err_and(Error::is_cost_limit) {
                    return item;
                }
                let built = self.take(grow.slot);
                self.charge(1)?;
                let Value::List(List::Owned(mut items)) = built? else {
                    return Err(Error::no_such_overload());
                };
                Arc::make_mut(&mut items).push(item?);
                Ok(Value::List(List::Owned(items)))
            }
            More::Entry(key, value) => {
                if let Slot::Ready(Err(error)) = &self.locals[grow.slot] {
                    return Err(error.clone());
                }
                let key = self.node(key)?;
                let value = self.node(value);
                let value = self.argument(value)?;
                self.insert(grow.slot, Ok(vec![(key, value)]))
            }
            More::Entries(node) => {
                let entries = self.node(node);
                if entries.as_ref().is_err_and(Error::is_cost_limit) {
                    return entries;
                }
                let entries = entries.and_then(|entries| entries.as_map()?.entries());
                self.insert(grow.slot, entries)
            }
        }
    }

    /// Charges a call even if its last argument is an error.
    pub(super) fn argument(&mut self, arg: Result<Value<'a>>) -> Result<Value<'a>> {
        if arg.as_ref().is_err_and(|error| !error.is_cost_limit()) {
            self.charge(1)?;
        }
        arg
    }

    fn insert(&mut self, slot: usize, more: Result<Vec<(Value<'a>, Value<'a>)>>) -> Result<Value<'a>> {
        let built = self.take(slot);
        self.charge(1)?;
        let Value::Map(Map::Owned(mut map)) = built? else { return Err(Error::no_such_overload()) };
        let entries = Arc::make_mut(&mut map);
        more?.into_iter().try_for_each(|(key, value)| insert_entry(entries, &key, value))?;
        Ok(Value::Map(Map::Owned(map)))
    }

    /// Moves the value of a variable out of its slot.
    fn take(&mut self, slot: usize) -> Result<Value<'a>> {
        match std::mem::replace(&mut self.locals[slot], Slot::Empty) {
            Slot::Ready(value) => value,
            Slot::Lazy(node) => self.node(node),
            Slot::Empty => Err(Error::new("no such attribute(s)")),
        }
    }

    /// Runs one iteration; returns whether to continue.
    fn round(
        &mut self,
        fold: &'a Fold,
        first: Result<Value<'a>>,
        second: Option<Result<Value<'a>>>,
    ) -> Result<bool> {
        self.locals[fold.first] = Slot::Ready(first);
        if let (Some(slot), Some(second)) = (fold.second, second) {
            self.locals[slot] = Slot::Ready(second);
        }
        match self.node(&fold.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.is_cost_limit() => return Err(error),
            _ => {}
        }
        match self.node(&fold.step) {
            Err(error) if error.is_cost_limit() => Err(error),
            value => {
                self.locals[fold.accumulator] = Slot::Ready(value);
                Ok(true)
            }
        }
    }
}

/// The type name of a value in the error for a range that is neither list nor map.
fn host_name(value: &Value<'_>) -> &'static str {
    match value {
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Null => "types.Null",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::List(_) | Value::Map(_) | Value::Opaque(_) => "ref.Val",
    }
}
