//! `ExtendedResourceToleration`: Pods that request extended resources tolerate the taints of their nodes.

use std::collections::BTreeSet;

use model::object::{items, list_mut, map_mut, text_in};
use serde_json::{Value, json};

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The plugin `ExtendedResourceToleration`.
pub(super) struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        let containers = ["containers", "initContainers"].into_iter();
        let requests = containers.flat_map(|key| items(pod, &["spec", key])).filter_map(|container| {
            container.get("resources")?.get("requests")?.as_object().map(|requests| requests.keys())
        });
        let asked: BTreeSet<String> = requests.flatten().filter(|name| is_extended(name)).cloned().collect();
        for resource in asked {
            let wanted = json!({"key": resource, "operator": "Exists", "effect": "NoSchedule"});
            let tolerations = list_mut(map_mut(pod, "spec"), "tolerations");
            let same = |other: &Value| {
                ["key", "operator", "effect", "value"]
                    .iter()
                    .all(|field| text_in(other, field) == text_in(&wanted, field))
            };
            match tolerations.iter_mut().find(|other| same(other)) {
                Some(known) => *known = wanted,
                None => tolerations.push(wanted),
            }
        }
        PluginResult::OK
    }
}

/// Whether a resource is an extended resource: not one of Kubernetes' own.
fn is_extended(name: &str) -> bool {
    let domain = name.split_once('/').map(|(domain, _)| domain);
    domain.is_some_and(|domain| !domain.ends_with("kubernetes.io")) && !name.starts_with("requests.")
}
