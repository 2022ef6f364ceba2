//! What a namespace says of where its pods run: `PodNodeSelector` and `PodTolerationRestriction`.

use std::collections::BTreeMap;

use kinds::admission::tolerations::{covers, merge};
use model::error::Error;
use model::object::{items, map_mut, present, text};
use serde_json::{Value, json};

use crate::admission::{Operation, Phases, Plugin, Request, Step, Target};
use crate::registry::Object;

async fn namespace_of(request: &Request<'_>) -> Result<Object, Error> {
    let name = request.namespace();
    let missing =
        || Error::NotFound { group: String::new(), resource: "namespaces".to_owned(), name: name.to_owned() };
    request.look_up("", "namespaces", "", name).await?.ok_or_else(missing)
}

/// Pods run on the nodes that an annotation of their namespace selects.
pub(super) struct PodNodeSelector;

impl Plugin for PodNodeSelector {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(target.is_pod() && target.operation == Operation::Create)
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(pod) = object else { return Step::OK };
        Step::later(async move {
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

/// Reads `a=b,c=d`.
fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("invalid selector: {text}"))?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    });
    pairs.collect()
}

/// Pods tolerate what an annotation of their namespace gives them, and no more than another one allows.
pub(super) struct PodTolerationRestriction;

impl Plugin for PodTolerationRestriction {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::both(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(pod) = object else { return Step::OK };
        Step::later(async move {
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

    fn validate<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a Object>) -> Step<'a> {
        let Some(pod) = object else { return Step::OK };
        Step::later(async move {
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
