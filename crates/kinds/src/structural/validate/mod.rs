//! Validates an object against its schema, with Kubernetes' messages.

mod correlate;
mod embedded;
mod errors;
mod lists;
mod types;
mod values;

use std::collections::HashSet;

use model::error::{FieldError, Path};
use serde_json::{Map, Value};

use super::node::Node;
use errors::Errors;
use values::Checker;

pub use correlate::{Old, OldValue};
pub use embedded::validate_value as embedded;

/// Validates a whole object.
pub fn object(root: &Node, new: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<FieldError> {
    let checker = Checker { prefix: "" };
    let mut errors = unique(checker.root(root, new, old.map(|old| Old { object: old, node: root })));
    errors.extend(embedded::validate(root, new));
    if old.is_none_or(|old| lists::validate(root, old).is_empty()) {
        errors.extend(lists::validate(root, new));
    }
    errors
}

/// Validates the status of an object.
pub fn status(root: &Node, new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = match (root.field("status"), new.get("status")) {
        (Some(node), Some(status)) => {
            unique(Checker { prefix: "status" }.nested(node, status, old.get("status")))
        }
        _ => Vec::new(),
    };
    let of_lists = lists::validate(root, new);
    if !of_lists.is_empty() && lists::validate(root, old).is_empty() {
        errors.extend(of_lists);
    }
    errors
}

/// Validates a single value with this path in messages.
pub fn value(node: &Node, value: &Value, path: &str) -> Vec<FieldError> {
    unique(Checker { prefix: path }.nested(node, value, None))
}

/// Validates kind, version and metadata of an object.
pub fn resource(object: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    embedded::check(object, &Path::OBJECT, &mut errors);
    errors.into_list()
}

/// Removes repeated errors: combined schemas often report the same.
fn unique(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    if errors.len() > 1 {
        let mut seen = HashSet::new();
        errors.retain(|error| seen.insert(error.to_string()));
    }
    errors
}
