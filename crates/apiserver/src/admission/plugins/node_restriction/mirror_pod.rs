//! Mirror Pods: API objects of static Pods, which a node runs without the server.

use model::error::quote;
use model::object::{items, present, text, text_in};
use serde_json::Value;

use crate::admission::plugins::pod_containers::containers;
use crate::registry::Object;

/// Checks a mirror Pod, and returns the uid of the owning Node.
pub fn check<'a>(node: &str, pod: &'a Object) -> Result<&'a str, String> {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    if present(pod, &["metadata", "annotations", MIRROR]).is_none() {
        return Err(format!(
            "pod does not have {} annotation, node {} can only create mirror pods",
            quote(MIRROR),
            quote(node)
        ));
    }
    if text(pod, &["spec", "nodeName"]) != node {
        return Err(format!("node {} can only create pods with spec.nodeName set to itself", quote(node)));
    }
    let owners: Vec<&Value> = items(pod, &["metadata", "ownerReferences"]).iter().collect();
    let [owner] = owners.as_slice() else {
        let word = if owners.is_empty() { "an" } else { "a single" };
        return Err(format!(
            "node {} can only create pods with {word} owner reference set to itself",
            quote(node)
        ));
    };
    let flag = |key: &str| owner.get(key).and_then(Value::as_bool) == Some(true);
    if (text_in(owner, "apiVersion"), text_in(owner, "kind"), text_in(owner, "name")) != ("v1", "Node", node)
    {
        return Err(format!(
            "node {} can only create pods with an owner reference set to itself",
            quote(node)
        ));
    }
    if !flag("controller") {
        return Err(format!(
            "node {} can only create pods with a controller owner reference set to itself",
            quote(node)
        ));
    }
    if flag("blockOwnerDeletion") {
        return Err(format!("node {} must not set blockOwnerDeletion on an owner reference", quote(node)));
    }
    if let Some(resource) = referenced(pod) {
        return Err(format!("node {} can not create pods that reference {resource}", quote(node)));
    }
    Ok(text_in(owner, "uid"))
}

/// Volumes that reference API objects, with their names in messages.
const VOLUMES: [(&str, &str); 5] = [
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// Sources of projected volumes that reference API objects, with their names in messages.
const PROJECTED: [(&str, &str); 3] = [
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// The kind of API object that a Pod references, if any: a static Pod must reference none.
fn referenced(pod: &Object) -> Option<&'static str> {
    let has = |value: &Value, key: &str| value.get(key).is_some_and(|value| !value.is_null());
    let volumes = || items(pod, &["spec", "volumes"]).iter();
    let sources = || volumes().filter_map(|volume| volume["projected"]["sources"].as_array()).flatten();
    let in_containers = |from: &str, of_variable: &str| {
        containers(pod).any(|container| {
            let entries = |key: &str| container[key].as_array().into_iter().flatten();
            entries("envFrom").any(|entry| has(entry, from))
                || entries("env").any(|variable| has(&variable["valueFrom"], of_variable))
        })
    };
    let of_secret = |volume: &Value| {
        has(volume, "secret")
            || volume.as_object().into_iter().flatten().any(|(_, source)| {
                has(source, "secretRef") || has(source, "secretName") || has(source, "nodePublishSecretRef")
            })
    };
    if !text(pod, &["spec", "serviceAccountName"]).is_empty() {
        return Some("serviceaccounts");
    }
    let has_secrets = !items(pod, &["spec", "imagePullSecrets"]).is_empty()
        || in_containers("secretRef", "secretKeyRef")
        || volumes().any(of_secret)
        || sources().any(|source| has(source, "secret"));
    if has_secrets {
        return Some("secrets");
    }
    let has_maps = in_containers("configMapRef", "configMapKeyRef")
        || volumes().any(|volume| has(volume, "configMap"))
        || sources().any(|source| has(source, "configMap"));
    if has_maps {
        return Some("configmaps");
    }
    if !items(pod, &["spec", "resourceClaims"]).is_empty() {
        return Some("resourceclaims");
    }
    let named = |value: &Value, table: &[(&str, &'static str)]| {
        table.iter().find(|(key, _)| has(value, key)).map(|(_, name)| *name)
    };
    volumes().find_map(|volume| {
        let parts = volume["projected"]["sources"].as_array().into_iter().flatten();
        named(volume, &VOLUMES).or_else(|| parts.into_iter().find_map(|part| named(part, &PROJECTED)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spec: Value) -> Option<&'static str> {
        let Value::Object(pod) = serde_json::json!({"spec": spec}) else { return None };
        referenced(&pod)
    }

    #[test]
    fn references_of_a_mirror_pod_to_api_objects_are_found() {
        use serde_json::json;
        assert_eq!(of(json!({"volumes": [{"emptyDir": {}}, {"hostPath": {"path": "/"}}]})), None);
        for (spec, expected) in [
            (json!({"serviceAccountName": "a"}), "serviceaccounts"),
            (json!({"imagePullSecrets": [{"name": "a"}]}), "secrets"),
            (json!({"initContainers": [{"envFrom": [{"secretRef": {"name": "a"}}]}]}), "secrets"),
            (json!({"volumes": [{"rbd": {"secretRef": {"name": "a"}}}]}), "secrets"),
            (json!({"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {}}}]}]}), "configmaps"),
            (json!({"volumes": [{"projected": {"sources": [{"configMap": {}}]}}]}), "configmaps"),
            (json!({"resourceClaims": [{}]}), "resourceclaims"),
            (json!({"volumes": [{"csi": {}}]}), "csidrivers (via CSI volumes)"),
            (
                json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {}}]}}]}),
                "serviceaccounts (via projected volumes)",
            ),
        ] {
            assert_eq!(of(spec.clone()), Some(expected), "{spec}");
        }
    }
}
