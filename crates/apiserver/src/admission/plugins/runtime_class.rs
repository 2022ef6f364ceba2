//! `RuntimeClass`: sets overhead and scheduling constraints of a Pod by its RuntimeClass.

use kinds::admission::tolerations;
use model::error::{Error, quote};
use model::object::{map_mut, present, text};
use serde_json::Value;

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

pub(super) struct RuntimeClass;

const NO_MATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

impl Plugin for RuntimeClass {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::both(target.is_pod() && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        if present(pod, &["spec", "runtimeClassName"]).is_none() {
            return PluginResult::OK;
        }
        PluginResult::later(async move {
            let class = class_of(request, pod).await?;
            complete(pod, &class).map_err(|message| request.forbidden(Some(pod), message))
        })
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        if present(pod, &["spec", "runtimeClassName"]).is_none() {
            let overhead = present(pod, &["spec", "overhead"]);
            return PluginResult::Done(
                check(overhead, None).map_err(|message| request.forbidden(object, message)),
            );
        }
        PluginResult::later(async move {
            let class = class_of(request, pod).await?;
            let (overhead, fixed) =
                (present(pod, &["spec", "overhead"]), present(&class, &["overhead", "podFixed"]));
            check(overhead, fixed).map_err(|message| request.forbidden(object, message))
        })
    }
}

async fn class_of(request: &AdmissionAttributes<'_>, pod: &Object) -> Result<Object, Error> {
    let name = text(pod, &["spec", "runtimeClassName"]);
    let found = request.look_up("node.k8s.io", "runtimeclasses", "", name).await?;
    let missing =
        || request.forbidden(Some(pod), format!("pod rejected: RuntimeClass {} not found", quote(name)));
    found.ok_or_else(missing)
}

fn is_same(a: &Value, b: &Value) -> bool {
    let amounts = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (a, b) = (amounts(a), amounts(b));
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    a.len() == b.len()
        && a.iter().all(|(key, value)| {
            b.get(key).is_some_and(|other| quota::amounts::compare(&text(value), &text(other)).is_eq())
        })
}

/// Sets overhead, node selector and tolerations of the class.
fn complete(pod: &mut Object, class: &Object) -> Result<(), String> {
    if let Some(fixed) = present(class, &["overhead", "podFixed"]) {
        if present(pod, &["spec", "overhead"]).is_some_and(|given| !is_same(given, fixed)) {
            return Err(NO_MATCH.to_owned());
        }
        map_mut(pod, "spec").insert("overhead".to_owned(), fixed.clone());
    }
    let Some(scheduling) = present(class, &["scheduling"]) else { return Ok(()) };
    let spec = map_mut(pod, "spec");
    for (key, value) in scheduling.get("nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        let selector = map_mut(spec, "nodeSelector");
        if let Some(other) = selector.get(key).filter(|other| *other != value) {
            let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
            let (of_class, of_pod) = (text(value), text(other));
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {of_class}; pod.spec.nodeSelector[{key}] = {of_pod}"
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    let none = Vec::new();
    let own = spec.get("tolerations").and_then(Value::as_array).unwrap_or(&none);
    let more = scheduling.get("tolerations").and_then(Value::as_array).unwrap_or(&none);
    let merged = tolerations::merge(own, more);
    if !merged.is_empty() {
        spec.insert("tolerations".to_owned(), merged.into());
    }
    Ok(())
}

/// Checks that the overhead of a Pod is the overhead of its class.
fn check(overhead: Option<&Value>, fixed: Option<&Value>) -> Result<(), String> {
    match (overhead, fixed) {
        (None, None) => Ok(()),
        (Some(_), None) => {
            Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                .to_owned())
        }
        (Some(overhead), Some(fixed)) if is_same(overhead, fixed) => Ok(()),
        (_, Some(_)) => Err(NO_MATCH.to_owned()),
    }
}
