//! Binding: assigns a Pod to a node.

use model::Object;
use model::condition::set_condition;
use model::error::{FieldError, quote};
use model::object::{entries, items, list_mut, map_mut, text};
use serde_json::{Value, json};

/// Validates a Binding.
pub fn validate_binding(binding: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (kind, name) = (text(binding, &["target", "kind"]), text(binding, &["target", "name"]));
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if name.is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    errors
}

/// Assigns a Pod to the node of a Binding.
///
/// # Errors
/// The reason why it cannot be assigned.
pub fn bind(pod: &mut Object, binding: &Object, now: &str) -> Result<(), String> {
    let name = text(pod, &["metadata", "name"]);
    if !text(pod, &["metadata", "deletionTimestamp"]).is_empty() {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = text(pod, &["spec", "nodeName"]);
    if !node.is_empty() {
        return Err(format!("pod {name} is already assigned to node {}", quote(node)));
    }
    if !items(pod, &["spec", "schedulingGates"]).is_empty() {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    map_mut(pod, "spec").insert("nodeName".to_owned(), text(binding, &["target", "name"]).into());
    map_mut(pod, "status").remove("nominatedNodeName");
    for field in ["annotations", "labels"] {
        let given: Vec<(String, Value)> =
            entries(binding, &["metadata", field]).map(|(key, value)| (key.clone(), value.clone())).collect();
        if !given.is_empty() {
            map_mut(map_mut(pod, "metadata"), field).extend(given);
        }
    }
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    set_condition(list_mut(map_mut(pod, "status"), "conditions"), condition);
    Ok(())
}
