//! `DefaultTolerationSeconds`: Pods leave nodes that are not ready or unreachable after five minutes.

use model::object::{items, list_mut, map_mut, text_in};
use serde_json::{Value, json};

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Seconds that a Pod stays on a node that is lost.
const SECONDS: u32 = 300;

/// The plugin `DefaultTolerationSeconds`.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        for key in [NOT_READY, UNREACHABLE] {
            let tolerates = |toleration: &Value| {
                ["", key].contains(&text_in(toleration, "key"))
                    && ["", "NoExecute"].contains(&text_in(toleration, "effect"))
            };
            if !items(pod, &["spec", "tolerations"]).iter().any(tolerates) {
                let added = json!({
                    "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
                });
                list_mut(map_mut(pod, "spec"), "tolerations").push(added);
            }
        }
        PluginResult::OK
    }
}
