//! Prunes the fields that a schema does not specify.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::node::{Node, Values};

/// The fields of every resource, whether its schema specifies them or not.
pub const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The most dropped paths that are reported: one long name could be in very many of them.
const REPORTED_MAX: usize = 1000;
const REPORTED_BYTES_MAX: usize = 1 << 20;

/// Prunes an object and returns the dropped paths, sorted.
pub fn prune(root: &Node, object: &mut Map<String, Value>) -> Vec<String> {
    let mut pruning = Pruning::default();
    pruning.object(Some(root), true, root.preserve_unknown, object);
    pruning.dropped.sort_unstable();
    pruning.dropped
}

/// Prunes a value in an object, which may be an embedded resource.
pub fn prune_value(node: &Node, is_resource: bool, value: &mut Value) {
    let mut pruning = Pruning::default();
    match value {
        Value::Object(object) => pruning.object(Some(node), is_resource, node.preserve_unknown, object),
        value => pruning.value(Some(node), false, value),
    }
}

#[derive(Default)]
struct Pruning {
    path: String,
    dropped: Vec<String>,
    reported_bytes: usize,
}

impl Pruning {
    /// Without a schema all nested fields are dropped; `keeps` is true if an outer schema preserves unknown fields.
    fn value(&mut self, node: Option<&Node>, keeps: bool, value: &mut Value) {
        let keeps = keeps || node.is_some_and(|node| node.preserve_unknown);
        match value {
            Value::Object(object) => self.object(node, node.is_some_and(|node| node.embedded), keeps, object),
            Value::Array(list) => self.list(node, keeps, list),
            _ => {}
        }
    }

    fn object(&mut self, node: Option<&Node>, embedded: bool, keeps: bool, object: &mut Map<String, Value>) {
        let start = self.path.len();
        object.retain(|key, value| {
            if embedded && META_FIELDS.contains(&key.as_str()) {
                return true;
            }
            self.enter_key(key);
            let kept = self.field(node, key, value) || keeps;
            if !kept {
                self.report();
            }
            self.path.truncate(start);
            kept
        });
    }

    /// Prunes the value of a key; false if the key is unknown.
    fn field(&mut self, node: Option<&Node>, key: &str, value: &mut Value) -> bool {
        let Some(node) = node else { return false };
        match (node.field(key), &node.values) {
            (Some(field), _) => self.value(Some(field), false, value),
            (None, Values::Of(values)) => self.value(Some(values), false, value),
            (None, Values::Any | Values::Forbidden) => self.value(None, false, value),
            (None, Values::Closed) => return false,
        }
        true
    }

    fn list(&mut self, node: Option<&Node>, keeps: bool, list: &mut [Value]) {
        let items = node.and_then(|node| node.items.as_deref());
        let start = self.path.len();
        for (index, item) in list.iter_mut().enumerate() {
            write!(self.path, "[{index}]").expect("writing to a String cannot fail");
            self.value(items, keeps, item);
            self.path.truncate(start);
        }
    }

    /// Records a dropped path, up to the limit.
    fn report(&mut self) {
        if self.dropped.len() < REPORTED_MAX && self.reported_bytes < REPORTED_BYTES_MAX {
            self.reported_bytes += self.path.len();
            self.dropped.push(self.path.clone());
        }
    }

    fn enter_key(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }
}
