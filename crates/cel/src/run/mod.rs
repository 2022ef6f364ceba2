//! The evaluator: charges every step and stops at the cost limit.

mod attribute;
mod call;
mod fold;
mod pattern;

use std::{collections::BTreeMap, sync::Arc};

pub(crate) use self::call::{CostRule, constant};
use self::pattern::Patterns;
use crate::{
    Bindings, Error, Key, List, Map, Result, Str, Value,
    cost::{LIST_CREATE, MAP_CREATE, STRUCT_CREATE},
    plan::{Item, MapItem, Node, ObjectNode, Plan},
};

/// Evaluates a plan; also returns its cost.
pub(crate) fn run<'a>(plan: &'a Plan, bindings: &dyn Bindings<'a>, limit: u64) -> (Result<Value<'a>>, u64) {
    let locals = (0..plan.slots).map(|_| Slot::Empty).collect();
    let mut run = Run { bindings, locals, cost: 0, limit, patterns: Patterns::default() };
    (run.node(&plan.root), run.cost)
}

/// The slot of a comprehension variable.
enum Slot<'a> {
    /// The comprehension is not running.
    Empty,
    /// Evaluated on first read.
    Lazy(&'a Node),
    /// The value. An accumulator may be an error that a later iteration absorbs.
    Ready(Result<Value<'a>>),
}

struct Run<'a, 'b> {
    bindings: &'b dyn Bindings<'a>,
    locals: Vec<Slot<'a>>,
    cost: u64,
    limit: u64,
    patterns: Patterns,
}

impl<'a> Run<'a, '_> {
    fn node(&mut self, node: &'a Node) -> Result<Value<'a>> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Test(attribute) => self.test(attribute),
            Node::And(pair) => self.logic(&pair.0, &pair.1, false),
            Node::Or(pair) => self.logic(&pair.0, &pair.1, true),
            Node::Call(call) => self.call(call),
            Node::IsAmong(pair) => self.is_among(&pair.0, &pair.1),
            Node::OptionalOr(pair) => self.optional_or(&pair.0, &pair.1),
            Node::OptionalOrValue(pair) => self.optional_or_value(&pair.0, &pair.1),
            Node::List(items) => self.list(items),
            Node::Map(items) => self.map(items),
            Node::Object(object) => self.object(object),
            Node::Grow(grow) => self.grow(grow),
            Node::Fold(fold) => self.fold(fold),
            Node::Bind(bind) => self.bind(bind),
        }
    }

    fn is_among(&mut self, item: &'a Node, list: &'a [Value<'static>]) -> Result<Value<'a>> {
        let value = self.node(item)?;
        Ok(Value::Bool(list.iter().any(|known| known.equals(&value))))
    }

    fn charge(&mut self, cost: u64) -> Result<()> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Error::cost_limit()) } else { Ok(()) }
    }

    /// `&&` and `||`: a deciding side absorbs the error of the other.
    fn logic(&mut self, left: &'a Node, right: &'a Node, decides: bool) -> Result<Value<'a>> {
        let first = match self.node(left) {
            Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(value)),
            Ok(Value::Bool(_)) => None,
            Ok(_) => Some(Error::no_such_overload()),
            Err(error) if error.is_cost_limit() => return Err(error),
            Err(error) => Some(error),
        };
        let second = match self.node(right) {
            Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(value)),
            Ok(Value::Bool(_)) => None,
            Ok(_) => Some(Error::no_such_overload()),
            Err(error) if error.is_cost_limit() => return Err(error),
            Err(error) => Some(error),
        };
        match first.or(second) {
            Some(error) => Err(error),
            None => Ok(Value::Bool(!decides)),
        }
    }

    fn optional_or(&mut self, optional: &'a Node, other: &'a Node) -> Result<Value<'a>> {
        match self.node(optional)? {
            Value::Optional(None) => self.node(other),
            value => Ok(value),
        }
    }

    fn optional_or_value(&mut self, optional: &'a Node, other: &'a Node) -> Result<Value<'a>> {
        match self.node(optional)? {
            Value::Optional(Some(value)) => Ok((*value).clone()),
            Value::Optional(None) => self.node(other),
            value => Ok(value),
        }
    }

    /// The value of an item; `None` if it is optional and absent.
    fn item(&mut self, item: &'a Item) -> Result<Option<Value<'a>>> {
        let value = self.node(&item.node)?;
        match value {
            Value::Optional(inner) if item.is_optional => Ok(inner.map(|inner| (*inner).clone())),
            value if item.is_optional => Err(Error::new(format!(
                "cannot initialize optional list element from non-optional value {value}"
            ))),
            value => Ok(Some(value)),
        }
    }

    /// Charges the creation of a value, even if it failed.
    fn made<T>(&mut self, made: Result<T>, cost: u64) -> Result<T> {
        if !made.as_ref().is_err_and(Error::is_cost_limit) {
            self.charge(cost)?;
        }
        made
    }

    fn list(&mut self, items: &'a [Item]) -> Result<Value<'a>> {
        let values = items.iter().filter_map(|item| self.item(item).transpose()).collect();
        let values = self.made(values, LIST_CREATE)?;
        Ok(Value::List(List::Owned(Arc::new(values))))
    }

    fn map(&mut self, items: &'a [MapItem]) -> Result<Value<'a>> {
        let entries = items.iter().filter_map(|item| self.entry(item).transpose()).collect();
        let entries: BTreeMap<_, _> = self.made(entries, MAP_CREATE)?;
        Ok(Value::Map(Map::Owned(Arc::new(entries))))
    }

    fn entry(&mut self, item: &'a MapItem) -> Result<Option<(Key<'a>, Value<'a>)>> {
        let key = self.node(&item.key)?;
        let value = self.item(&item.value)?;
        let unsupported = || Error::new(format!("unsupported key type: {}", key.ty().name()));
        let key = Key::from_value(&key).ok_or_else(unsupported)?;
        Ok(value.map(|value| (key, value)))
    }

    fn object(&mut self, object: &'a ObjectNode) -> Result<Value<'a>> {
        let field = |(name, item): &'a (Arc<str>, Item)| {
            let value = self.item(item).transpose()?;
            Some(value.map(|value| (Key::String(Str::Borrowed(name)), value)))
        };
        let entries = object.fields.iter().filter_map(field).collect();
        let entries: BTreeMap<_, _> = self.made(entries, STRUCT_CREATE)?;
        Ok(Value::Map(Map::Made { name: &object.name, entries: Arc::new(entries) }))
    }
}
