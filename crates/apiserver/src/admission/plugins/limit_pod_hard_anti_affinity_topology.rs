//! `LimitPodHardAntiAffinityTopology`: required anti-affinity of Pods has the topology key `kubernetes.io/hostname`.

use model::object::{present, text_in};
use serde_json::Value;

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The plugin `LimitPodHardAntiAffinityTopology`.
pub(super) struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(target.is_pod() && target.operation != Operation::Delete)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        const HOST: &str = "kubernetes.io/hostname";
        const TERMS: [&str; 4] =
            ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let terms =
            object.and_then(|pod| present(pod, &TERMS)).and_then(Value::as_array).into_iter().flatten();
        let other = terms.map(|term| text_in(term, "topologyKey")).find(|key| *key != HOST);
        PluginResult::Done(other.map_or(Ok(()), |key| {
            let message = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOST} is allowed"
            );
            Err(request.forbidden(object, message))
        }))
    }
}
