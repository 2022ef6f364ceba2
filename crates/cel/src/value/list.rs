//! Lists: JSON arrays, lists created by expressions, and concatenations.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::{Declared, Error, Result, Value, declared::ListKind};

/// A list.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// A JSON array, whose items are converted on access.
    Json {
        /// The JSON items.
        items: &'a [Json],
        /// The declaration of the list.
        declared: &'a Declared,
    },
    /// A list created by the expression.
    Owned(Arc<Vec<Value<'a>>>),
    /// A concatenation, which costs one regardless of the lengths.
    Joined(Arc<Joined<'a>>),
}

/// A concatenation of two lists.
#[derive(Debug)]
pub struct Joined<'a> {
    first: List<'a>,
    second: List<'a>,
    len: usize,
    depth: usize,
}

/// A deeper chain of concatenations is flattened, which bounds the recursion.
const MAX_JOINED_DEPTH: usize = 64;

impl<'a> List<'a> {
    /// The number of items.
    pub fn len(&self) -> usize {
        match self {
            List::Json { items, .. } => items.len(),
            List::Owned(items) => items.len(),
            List::Joined(joined) => joined.len,
        }
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at an index.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>>> {
        match self {
            List::Json { items, declared } => {
                items.get(index).map(|item| Value::from_json(item, declared.item()))
            }
            List::Owned(items) => items.get(index).cloned().map(Ok),
            List::Joined(joined) => match index.checked_sub(joined.first.len()) {
                None => joined.first.get(index),
                Some(rest) => joined.second.get(rest),
            },
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>>> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// Converts all items.
    pub fn to_vec(&self) -> Result<Vec<Value<'a>>> {
        self.iter().collect()
    }

    fn depth(&self) -> usize {
        match self {
            List::Joined(joined) => joined.depth,
            _ => 0,
        }
    }

    /// The list type, which defines `==` and `+`.
    pub(crate) fn kind(&self) -> &ListKind {
        match self {
            List::Json { declared, .. } => &declared.list_kind,
            _ => &ListKind::Atomic,
        }
    }

    /// Concatenates two lists, or merges them if they are sets or list maps.
    pub(crate) fn plus(&self, other: &List<'a>) -> Result<List<'a>> {
        match self.kind() {
            ListKind::Atomic => self.join(other),
            ListKind::Set => self.union(other),
            ListKind::Map(keys) => self.merge(other, keys),
        }
    }

    fn join(&self, other: &List<'a>) -> Result<List<'a>> {
        if self.is_empty() {
            return Ok(other.clone());
        }
        if other.is_empty() {
            return Ok(self.clone());
        }
        let depth = self.depth().max(other.depth()) + 1;
        let len = self.len().checked_add(other.len()).ok_or_else(|| Error::new("list is too long"))?;
        if depth > MAX_JOINED_DEPTH && len <= 1 << 20 {
            let items: Result<Vec<_>> = self.iter().chain(other.iter()).collect();
            return Ok(List::Owned(Arc::new(items?)));
        }
        if depth > MAX_JOINED_DEPTH {
            return Err(Error::new("list is too long"));
        }
        Ok(List::Joined(Arc::new(Joined { first: self.clone(), second: other.clone(), len, depth })))
    }

    fn union(&self, other: &List<'a>) -> Result<List<'a>> {
        let mut items = self.to_vec()?;
        for item in other.iter() {
            let item = item?;
            if !items.iter().any(|known| known.equals(&item)) {
                items.push(item);
            }
        }
        Ok(List::Owned(Arc::new(items)))
    }

    fn merge(&self, other: &List<'a>, keys: &[Arc<str>]) -> Result<List<'a>> {
        let mut items = self.to_vec()?;
        for item in other.iter() {
            let item = item?;
            match items.iter_mut().find(|known| same_keys(known, &item, keys)) {
                Some(known) => *known = item,
                None => items.push(item),
            }
        }
        Ok(List::Owned(Arc::new(items)))
    }
}

/// Whether two items of a list map have the same keys.
pub(crate) fn same_keys(first: &Value<'_>, second: &Value<'_>, keys: &[Arc<str>]) -> bool {
    let (Value::Map(first), Value::Map(second)) = (first, second) else { return false };
    keys.iter().all(|key| match (first.json_field(key), second.json_field(key)) {
        (Some(first), Some(second)) => first == second,
        (None, None) => true,
        _ => false,
    })
}
