//! `TaintNodesByCondition`: taints new nodes as not ready.

use model::object::{items, list_mut, map_mut, text_in};
use serde_json::{Value, json};

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The plugin `TaintNodesByCondition`.
pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(target.is("", "nodes", "") && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(node) = object else { return PluginResult::OK };
        let has =
            |taint: &Value| text_in(taint, "key") == NOT_READY && text_in(taint, "effect") == "NoSchedule";
        if !items(node, &["spec", "taints"]).iter().any(has) {
            list_mut(map_mut(node, "spec"), "taints").push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        PluginResult::OK
    }
}
