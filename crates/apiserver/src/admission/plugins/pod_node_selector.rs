//! `PodNodeSelector`: adds the node selector in an annotation of the namespace to its Pods.

use std::collections::BTreeMap;

use model::error::Error;
use model::object::{map_mut, text};

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The namespace of the request.
pub(super) async fn namespace_of(request: &AdmissionAttributes<'_>) -> Result<Object, Error> {
    let name = request.namespace();
    let missing =
        || Error::NotFound { group: String::new(), resource: "namespaces".to_owned(), name: name.to_owned() };
    request.look_up("", "namespaces", "", name).await?.ok_or_else(missing)
}

/// The plugin `PodNodeSelector`.
pub(super) struct PodNodeSelector;

impl Plugin for PodNodeSelector {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(target.is_pod() && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        PluginResult::later(async move {
            let namespace = namespace_of(request).await?;
            let annotation = ["metadata", "annotations", "scheduler.alpha.kubernetes.io/node-selector"];
            let wanted =
                labels(text(&namespace, &annotation)).map_err(|message| Error::Failed { message })?;
            let selector = map_mut(map_mut(pod, "spec"), "nodeSelector");
            let differs = |(key, value): (&String, &String)| {
                selector.get(key).is_some_and(|given| given.as_str() != Some(value))
            };
            if wanted.iter().any(differs) {
                let message = "pod node label selector conflicts with its namespace node label selector";
                return Err(request.forbidden(Some(pod), message));
            }
            selector.extend(wanted.into_iter().map(|(key, value)| (key, value.into())));
            if selector.is_empty() {
                map_mut(pod, "spec").remove("nodeSelector");
            }
            Ok(())
        })
    }
}

/// Parses `a=b,c=d`.
fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("invalid selector: {text}"))?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    });
    pairs.collect()
}
