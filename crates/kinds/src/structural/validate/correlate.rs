//! Correlates new values with old ones: errors of unchanged values do not fail an update (ratcheting).

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::structural::node::{ListType, Node, Values};

/// The old object of an update.
#[derive(Clone, Copy)]
pub struct Old<'a> {
    pub object: &'a Map<String, Value>,
    pub node: &'a Node,
}

/// An old value with its schema.
#[derive(Clone, Copy)]
pub struct OldValue<'a> {
    pub value: &'a Value,
    pub node: &'a Node,
}

impl<'a> Old<'a> {
    /// The old value of a key, if it can be correlated.
    pub fn key(self, key: &str) -> Option<OldValue<'a>> {
        Some(OldValue { value: self.object.get(key)?, node: self.node.at_key(key)? })
    }

    /// Whether the object is unchanged.
    pub fn equals(self, new: &Map<String, Value>) -> bool {
        self.object.len() == new.len()
            && new.iter().all(|(key, value)| self.key(key).is_some_and(|old| old.equals(value)))
    }
}

impl<'a> OldValue<'a> {
    /// The old value as an object.
    pub fn object(self) -> Option<Old<'a>> {
        Some(Old { object: self.value.as_object()?, node: self.node })
    }

    /// The old items of a list with keys.
    pub fn items(self) -> Option<OldItems<'a>> {
        let (ListType::Map(keys), Value::Array(list)) = (&self.node.list_type, self.value) else {
            return None;
        };
        let node = self.node.items.as_deref()?;
        let mut by_key = HashMap::with_capacity(list.len());
        for item in list {
            if let Some(key) = composite_key(keys, item) {
                by_key.entry(key).or_insert(item);
            }
        }
        Some(OldItems { keys, node, by_key })
    }

    /// Whether the value is unchanged. Fields without a schema count as changed.
    pub fn equals(self, new: &Value) -> bool {
        match (self.value, new) {
            (Value::Object(_), Value::Object(new)) => self.object().is_some_and(|old| old.equals(new)),
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => match self.items() {
                Some(items) => new.iter().all(|item| items.of(item).is_some_and(|old| old.equals(item))),
                None => old == new,
            },
            (old, new) => old == new,
        }
    }
}

/// The items of an old list, by key.
pub struct OldItems<'a> {
    keys: &'a [Box<str>],
    node: &'a Node,
    by_key: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    /// The old item with the key of a new one.
    pub fn of(&self, item: &Value) -> Option<OldValue<'a>> {
        let value = *self.by_key.get(&composite_key(self.keys, item)?)?;
        Some(OldValue { value, node: self.node })
    }
}

/// The key of an item; `None` if one of its key fields is missing.
fn composite_key(keys: &[Box<str>], item: &Value) -> Option<String> {
    let mut all = String::new();
    for key in keys {
        let value = item.get(&**key)?;
        if value.is_null() || value.is_array() || value.is_object() {
            return None;
        }
        all.push_str(&value.to_string());
        all.push('\0');
    }
    Some(all)
}

/// The schema of unlisted fields, if there is one.
pub fn values_of(node: &Node) -> Option<&Node> {
    match &node.values {
        Values::Of(values) => Some(values),
        Values::Any | Values::Closed | Values::Forbidden => None,
    }
}
