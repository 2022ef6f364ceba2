//! `PodTolerationRestriction`: adds the tolerations in an annotation of the namespace to its Pods, and checks them against
//! its whitelist.

use kinds::admission::tolerations::{covers, merge};
use model::error::Error;
use model::object::{items, map_mut, present};
use serde_json::{Value, json};

use super::pod_node_selector::namespace_of;
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The plugin `PodTolerationRestriction`.
pub(super) struct PodTolerationRestriction;

impl Plugin for PodTolerationRestriction {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::both(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        PluginResult::later(async move {
            let namespace = namespace_of(request).await?;
            let mut given: Vec<Value> = items(pod, &["spec", "tolerations"]).to_vec();
            let mut more = Vec::new();
            if request.operation == Operation::Create {
                more = tolerations(&namespace, "defaultTolerations")?.unwrap_or_default();
            }
            if !is_best_effort(pod) {
                let pressure = "node.kubernetes.io/memory-pressure";
                more.push(json!({"key": pressure, "operator": "Exists", "effect": "NoSchedule"}));
            }
            if !more.is_empty() {
                given = merge(&given, &more);
                map_mut(pod, "spec").insert("tolerations".to_owned(), given.clone().into());
            }
            check(&namespace, &given)
        })
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        PluginResult::later(async move {
            let given: Vec<Value> = items(pod, &["spec", "tolerations"]).to_vec();
            check(&namespace_of(request).await?, &given)
        })
    }
}

fn is_best_effort(pod: &Object) -> bool {
    let containers = ["containers", "initContainers"].into_iter().flat_map(|key| items(pod, &["spec", key]));
    let asks = |container: &Value| {
        ["requests", "limits"].iter().any(|part| {
            let part = container.get("resources").and_then(|resources| resources.get(part));
            ["cpu", "memory"].iter().any(|name| part.and_then(|part| part.get(name)).is_some())
        })
    };
    !containers.into_iter().any(asks)
}

fn tolerations(namespace: &Object, key: &str) -> Result<Option<Vec<Value>>, Error> {
    let key = format!("scheduler.alpha.kubernetes.io/{key}");
    match present(namespace, &["metadata", "annotations", &key]).and_then(Value::as_str) {
        None => Ok(None),
        Some("") => Ok(Some(Vec::new())),
        Some(text) => {
            serde_json::from_str(text).map(Some).map_err(|error| Error::Failed { message: error.to_string() })
        }
    }
}

fn check(namespace: &Object, given: &[Value]) -> Result<(), Error> {
    let allowed = tolerations(namespace, "tolerationsWhitelist")?.unwrap_or_default();
    let is_allowed = |toleration: &Value| allowed.iter().any(|wide| covers(wide, toleration));
    if allowed.is_empty() || given.iter().all(is_allowed) {
        return Ok(());
    }
    let message = "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist";
    Err(Error::Failed { message: message.to_owned() })
}
