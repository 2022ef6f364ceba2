//! What pods tolerate of nodes: `DefaultTolerationSeconds` and `ExtendedResourceToleration`; and `TaintNodesByCondition`, which gives
//! new nodes something to tolerate.

use std::collections::BTreeSet;

use model::object::{items, list_mut, map_mut, present, text_in};
use serde_json::{Value, json};

use crate::admission::{Operation, Phases, Plugin, Request, Step, Target};
use crate::registry::Object;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// For how long a pod stays on a node that is lost.
const SECONDS: u32 = 300;

/// Pods leave a node that is lost after some time.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(&'a self, _request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(pod) = object else { return Step::OK };
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
        Step::OK
    }
}

/// Pods that ask for extended resources tolerate the nodes that are kept for them.
pub(super) struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(&'a self, _request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(pod) = object else { return Step::OK };
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
        Step::OK
    }
}

/// Whether a resource is one that nodes offer beside those that Kubernetes knows.
fn is_extended(name: &str) -> bool {
    let domain = name.split_once('/').map(|(domain, _)| domain);
    domain.is_some_and(|domain| !domain.ends_with("kubernetes.io")) && !name.starts_with("requests.")
}

/// A new node is not ready until somebody says that it is.
pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(target.is("", "nodes", "") && target.operation == Operation::Create)
    }

    fn admit<'a>(&'a self, _request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(node) = object else { return Step::OK };
        let has =
            |taint: &Value| text_in(taint, "key") == NOT_READY && text_in(taint, "effect") == "NoSchedule";
        if !items(node, &["spec", "taints"]).iter().any(has) {
            list_mut(map_mut(node, "spec"), "taints").push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        Step::OK
    }
}

/// Pods keep away from each other by node, and by nothing larger: `LimitPodHardAntiAffinityTopology`.
pub(super) struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::validating(target.is_pod() && target.operation != Operation::Delete)
    }

    fn validate<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a Object>) -> Step<'a> {
        const HOST: &str = "kubernetes.io/hostname";
        const TERMS: [&str; 4] =
            ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let terms =
            object.and_then(|pod| present(pod, &TERMS)).and_then(Value::as_array).into_iter().flatten();
        let other = terms.map(|term| text_in(term, "topologyKey")).find(|key| *key != HOST);
        Step::Done(other.map_or(Ok(()), |key| {
            let message = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOST} is allowed"
            );
            Err(request.forbidden(object, message))
        }))
    }
}
