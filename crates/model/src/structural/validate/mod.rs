//! What is wrong with an object, in the words of Kubernetes.

use serde_json::{Map, Value};

use super::node::Node;
use crate::error::FieldError;

/// Checks a whole object.
pub fn object(root: &Node, new: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<FieldError> {
    let _ = (root, new, old);
    Vec::new()
}

/// Checks the status of an object.
pub fn status(root: &Node, new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<FieldError> {
    let _ = (root, new, old);
    Vec::new()
}
