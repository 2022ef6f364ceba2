//! `PodTopologyLabels`: copies zone and region of the Node to a Pod that is bound to it.

use model::error::Error;
use model::object::{map_mut, present, text};
use serde_json::Value;

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let is_placed = target.is_pod() || target.is("", "pods", "binding");
        Phases::mutating(is_placed && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(object) = object else { return PluginResult::OK };
        let node = match request.subresource() {
            "binding" if text(object, &["target", "kind"]) != "Node" => "",
            "binding" => text(object, &["target", "name"]),
            _ => text(object, &["spec", "nodeName"]),
        };
        if node.is_empty() {
            return PluginResult::OK;
        }
        let node = node.to_owned();
        PluginResult::later(copy(request, object, node))
    }
}

async fn copy(request: &AdmissionAttributes<'_>, object: &mut Object, node: String) -> Result<(), Error> {
    let Some(node) = request.look_up("", "nodes", "", &node).await? else { return Ok(()) };
    for label in LABELS {
        if let Some(value) = present(&node, &["metadata", "labels", label]).and_then(Value::as_str) {
            map_mut(map_mut(object, "metadata"), "labels").insert(label.to_owned(), value.into());
        }
    }
    Ok(())
}
