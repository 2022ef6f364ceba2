//! `NodeRestriction`: a node may change its own Node and the Pods that are bound to it.

mod mirror_pod;
mod token;

use std::collections::BTreeSet;

use model::error::{Error, quote};
use model::object::{present, text};
use serde_json::Value;

use super::certificates::parsed;
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

pub(super) struct NodeRestriction;

const USER: &str = "system:node:";
const RESTRICTED: &str = "node-restriction.kubernetes.io";

/// Kubernetes labels that a node may set on itself.
const OWN_LABELS: [&str; 12] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "node.kubernetes.io/windows-build",
];
const OWN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

impl Plugin for NodeRestriction {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let of = (target.resource_type.group.as_str(), target.resource_type.plural.as_str());
        Phases::mutating(matches!(
            of,
            ("", "pods" | "nodes" | "persistentvolumeclaims" | "serviceaccounts")
                | ("certificates.k8s.io", "certificatesigningrequests")
                | ("coordination.k8s.io", "leases")
                | ("storage.k8s.io", "csinodes")
                | ("resource.k8s.io", "resourceslices")
        ))
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let caller = &request.call.caller;
        let Some(node) = caller.name.strip_prefix(USER).filter(|_| caller.is_in("system:nodes")) else {
            return PluginResult::OK;
        };
        let object = object.map(|object| &*object);
        if node.is_empty() {
            let message = format!("could not determine node from user {}", quote(&caller.name));
            return PluginResult::Done(Err(request.forbidden(object, message)));
        }
        match (request.call.resource_type.plural.as_str(), request.subresource()) {
            ("pods", "" | "eviction") => PluginResult::later(pod(request, node, object)),
            ("serviceaccounts", "token") => PluginResult::later(token::check(request, node, object)),
            _ => {
                let decided = decide(request, node, object);
                PluginResult::Done(decided.map_err(|message| request.forbidden(object, message)))
            }
        }
    }
}

fn decide(request: &AdmissionAttributes<'_>, node: &str, object: Option<&Object>) -> Result<(), String> {
    let is_own = |path: &[&str]| object.or(request.old).is_none_or(|object| text(object, path) == node);
    match (request.call.resource_type.plural.as_str(), request.subresource()) {
        ("pods", "status") => pod_status(request, node, object),
        ("pods", other) => Err(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            quote(other)
        )),
        ("nodes", _) => own_node(request, node, object),
        ("persistentvolumeclaims", "status") => claim_status(request, node, object),
        ("persistentvolumeclaims", _) => Err("may only update PVC status".to_owned()),
        ("leases", _) if request.namespace() != "kube-node-lease" => {
            let namespace = "kube-node-lease";
            Err(format!("can only access leases in the {} system namespace", quote(namespace)))
        }
        ("leases", _) if !is_own(&["metadata", "name"]) => {
            Err("can only access node lease with the same name as the requesting node".to_owned())
        }
        ("csinodes", _) if !is_own(&["metadata", "name"]) => {
            Err("can only access CSINode with the same name as the requesting node".to_owned())
        }
        ("resourceslices", _) if request.operation != Operation::Update && !is_own(&["spec", "nodeName"]) => {
            let verb = if request.operation == Operation::Delete { "delete" } else { "create" };
            Err(format!("can only {verb} ResourceSlice with the same NodeName as the requesting node"))
        }
        ("certificatesigningrequests", "") => signing_request(request, node, object),
        _ => Ok(()),
    }
}

fn not_found(plural: &str, name: &str) -> Error {
    Error::NotFound { group: String::new(), resource: plural.to_owned(), name: name.to_owned() }
}

async fn pod(request: &AdmissionAttributes<'_>, node: &str, object: Option<&Object>) -> Result<(), Error> {
    let refuse = |message: String| request.forbidden(object, message);
    match (request.operation, request.subresource(), object) {
        (Operation::Create, "", Some(pod)) => {
            let owner = mirror_pod::check(node, pod).map_err(refuse)?;
            let found =
                request.look_up("", "nodes", "", node).await?.ok_or_else(|| not_found("nodes", node))?;
            let uid = text(&found, &["metadata", "uid"]);
            if uid != owner {
                return Err(refuse(format!("node {node} UID mismatch: expected {owner} got {uid}")));
            }
            Ok(())
        }
        (Operation::Create, "eviction", _) => {
            let (namespace, name) = (request.namespace(), request.name);
            let found = request.look_up("", "pods", namespace, name).await?;
            let found = found.ok_or_else(|| not_found("pods", name))?;
            if text(&found, &["spec", "nodeName"]) != node {
                return Err(refuse(format!(
                    "node {node} can only evict pods with spec.nodeName set to itself"
                )));
            }
            Ok(())
        }
        (Operation::Delete, "", _) => {
            if request.old.is_some_and(|old| text(old, &["spec", "nodeName"]) != node) {
                return Err(refuse(format!(
                    "node {} can only delete pods with spec.nodeName set to itself",
                    quote(node)
                )));
            }
            Ok(())
        }
        (operation, ..) => Err(refuse(format!(
            "unexpected operation \"{}\", node {} can only create and delete mirror pods",
            operation.as_str(),
            quote(node)
        ))),
    }
}

fn pod_status(request: &AdmissionAttributes<'_>, node: &str, object: Option<&Object>) -> Result<(), String> {
    let (Some(new), Some(old)) = (object, request.old) else { return Ok(()) };
    if text(old, &["spec", "nodeName"]) != node {
        return Err(format!(
            "node {} can only update pod status for pods with spec.nodeName set to itself",
            quote(node)
        ));
    }
    if present(new, &["metadata", "labels"]) != present(old, &["metadata", "labels"]) {
        return Err(format!("node {} cannot update labels through pod status", quote(node)));
    }
    if present(new, &["status", "resourceClaimStatuses"])
        != present(old, &["status", "resourceClaimStatuses"])
    {
        return Err(format!("node {} cannot update resource claim statues", quote(node)));
    }
    let extended = ["status", "extendedResourceClaimStatus"];
    if present(new, &extended) != present(old, &extended) {
        return Err(format!("node {} cannot update extended resource claim status", quote(node)));
    }
    Ok(())
}

/// A node may only change the capacity and the conditions of a PersistentVolumeClaim.
fn claim_status(
    request: &AdmissionAttributes<'_>,
    node: &str,
    object: Option<&Object>,
) -> Result<(), String> {
    const OWN: [&str; 4] = ["capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"];
    let (Some(new), Some(old)) = (object, request.old) else { return Ok(()) };
    let rest = |claim: &Object| {
        let mut claim = claim.clone();
        for (part, own) in [("status", &OWN[..]), ("metadata", &["resourceVersion", "managedFields"])] {
            if let Some(Value::Object(fields)) = claim.get_mut(part) {
                fields.retain(|key, _| !own.contains(&key.as_str()));
            }
        }
        claim
    };
    if rest(new) == rest(old) {
        return Ok(());
    }
    Err(format!(
        "node {} is not allowed to update fields other than status.quantity and status.conditions",
        quote(node)
    ))
}

/// A node may only request certificates for its own name.
fn signing_request(
    request: &AdmissionAttributes<'_>,
    node: &str,
    object: Option<&Object>,
) -> Result<(), String> {
    let Some(asked) = object.filter(|_| request.operation == Operation::Create) else { return Ok(()) };
    let signer = text(asked, &["spec", "signerName"]);
    if !matches!(signer, "kubernetes.io/kubelet-serving" | "kubernetes.io/kube-apiserver-client-kubelet") {
        return Ok(());
    }
    match parsed(asked) {
        Err(reason) => Err(format!("unable to parse csr: {reason}")),
        Ok(csr) if csr.common_name() == format!("{USER}{node}") => Ok(()),
        Ok(_) => Err(format!("can only create a node CSR with CN={USER}{node}")),
    }
}

fn own_node(request: &AdmissionAttributes<'_>, node: &str, object: Option<&Object>) -> Result<(), String> {
    if request.name != node {
        return Err(format!("node {} is not allowed to modify node {}", quote(node), quote(request.name)));
    }
    let Some(new) = object else { return Ok(()) };
    let empty = Object::new();
    let old = request.old.unwrap_or(&empty);
    let labels = forbidden_labels(new, old);
    let source = present(new, &["spec", "configSource"]);
    if source.is_some() && source != present(old, &["spec", "configSource"]) {
        let what = match request.old {
            None => "create pods with a non-nil configSource",
            Some(_) => "update configSource to a new non-nil configSource",
        };
        return Err(format!("node {} is not allowed to {what}", quote(node)));
    }
    if request.old.is_none() {
        if labels.is_empty() {
            return Ok(());
        }
        return Err(format!(
            "node {} is not allowed to set the following labels: {}",
            quote(node),
            joined(&labels)
        ));
    }
    for (path, word) in [(["spec", "taints"], "taints"), (["metadata", "ownerReferences"], "ownerReferences")]
    {
        if present(new, &path) != present(old, &path) {
            return Err(format!("node {} is not allowed to modify {word}", quote(node)));
        }
    }
    if labels.is_empty() {
        Ok(())
    } else {
        Err(format!("is not allowed to modify labels: {}", joined(&labels)))
    }
}

fn joined(labels: &BTreeSet<String>) -> String {
    labels.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The changed labels that a node may not set.
fn forbidden_labels(new: &Object, old: &Object) -> BTreeSet<String> {
    let empty = Object::new();
    let labels =
        |object: &'_ Object| present(object, &["metadata", "labels"]).and_then(Value::as_object).cloned();
    let (new, old) = (labels(new).unwrap_or_else(|| empty.clone()), labels(old).unwrap_or(empty));
    let differs = |key: &&String| new.get(*key) != old.get(*key);
    let is_below = |domain: &str, of: &str| domain == of || domain.ends_with(&format!(".{of}"));
    let is_forbidden = |key: &&String| {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_of_kubernetes = is_below(domain, "kubernetes.io") || is_below(domain, "k8s.io");
        let is_own =
            OWN_LABELS.contains(&key.as_str()) || OWN_DOMAINS.iter().any(|own| is_below(domain, own));
        is_below(domain, RESTRICTED) || (is_of_kubernetes && !is_own)
    };
    new.keys().chain(old.keys()).filter(differs).filter(is_forbidden).cloned().collect()
}
