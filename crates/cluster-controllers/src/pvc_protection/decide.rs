//! The use of PersistentVolumeClaims by Pods.

use serde::Deserialize;

use crate::views::{Metadata, or_default};

/// The fields of a Pod that this controller reads.
#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
    #[serde(default, deserialize_with = "or_default")]
    volumes: Vec<Volume>,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    name: String,
    persistent_volume_claim: Option<Source>,
    ephemeral: Option<Ephemeral>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    claim_name: String,
}

/// An ephemeral volume; its fields do not matter.
#[derive(Debug, Deserialize)]
struct Ephemeral {}

/// The claims that a Pod refers to, including those of its ephemeral volumes.
pub(super) fn named(pod: &Pod) -> impl Iterator<Item = String> {
    pod.spec.volumes.iter().filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => Some(source.claim_name.clone()),
        (None, Some(_)) => Some(made_for(pod, volume)),
        (None, None) => None,
    })
}

fn made_for(pod: &Pod, volume: &Volume) -> String {
    format!("{}-{}", pod.metadata.name, volume.name)
}

/// Whether an existing Pod may stop to use its claims. A running Pod on a node does not.
pub(super) fn may_free(pod: &Pod) -> bool {
    pod.spec.node_name.is_empty()
        || ["Failed", "Succeeded"].contains(&pod.status.phase.as_str())
        || pod.metadata.deletion_timestamp.is_some()
}

/// Whether a Pod uses a claim: only a scheduled one does.
pub(super) fn uses(pod: &Pod, claim: &Metadata) -> bool {
    if pod.spec.node_name.is_empty() {
        return false;
    }
    let name = &claim.name;
    let is_shut_down =
        pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0);
    let is_its_own =
        claim.owner_references.iter().any(|owner| owner.controller && owner.uid == pod.metadata.uid);
    pod.spec.volumes.iter().any(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => source.claim_name == *name,
        (None, Some(_)) => !is_shut_down && is_its_own && made_for(pod, volume) == *name,
        (None, None) => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(node: &str, volumes: Value, more: &Value) -> Pod {
        let mut metadata = json!({"name": "p", "uid": "u"});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": metadata, "spec": {"nodeName": node, "volumes": volumes}}))
            .unwrap()
    }

    fn claim(name: &str, owner: &str) -> Metadata {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": true});
        serde_json::from_value(json!({"name": name, "ownerReferences": [owner]})).unwrap()
    }

    #[test]
    fn a_claim_is_used_by_scheduled_pods_that_refer_to_it() {
        let by_name = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "w", "emptyDir": {}}]);
        let ephemeral = json!([{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]);
        let none = json!({});
        let shut_down = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0});
        for (pod, claim, expected) in [
            (pod("n", by_name.clone(), &none), claim("c", "x"), true),
            (pod("", by_name.clone(), &none), claim("c", "x"), false),
            (pod("n", by_name.clone(), &none), claim("d", "x"), false),
            (pod("n", by_name, &shut_down), claim("c", "x"), true),
            (pod("n", ephemeral.clone(), &none), claim("p-v", "u"), true),
            (pod("n", ephemeral.clone(), &none), claim("p-v", "x"), false),
            (pod("n", ephemeral, &shut_down), claim("p-v", "u"), false),
            (pod("n", Value::Null, &none), claim("p-v", "u"), false),
        ] {
            assert_eq!(uses(&pod, &claim), expected, "{pod:?} {claim:?}");
        }
    }

    #[test]
    fn pods_refer_to_claims_directly_and_by_ephemeral_volumes() {
        let volumes = json!([{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "b", "ephemeral": {}},
            {"name": "d", "emptyDir": {}}]);
        assert_eq!(named(&pod("n", volumes, &json!({}))).collect::<Vec<_>>(), ["c", "p-b"]);
    }
}
