//! Installation of a role's CRDs.

use std::time::Duration;

use controller::{Apply, Objects, ResourceKind};
use kube::Client;
use serde_json::Value;

use crate::{BoxError, Role};

const CRDS: ResourceKind = ResourceKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

/// The time between two reads of a CRD that is not established yet.
const POLL: Duration = Duration::from_millis(50);

/// Applies the CRDs of a role, and waits until they are established.
pub(crate) async fn install(client: &Client, role: &Role) -> Result<(), BoxError> {
    let (objects, manager) = (Objects::new(client, &CRDS.resource(), None), role.account());
    for crd in role.crds() {
        let name = crd["metadata"]["name"].as_str().ok_or("a CRD of the role has no name")?;
        let mut applied: Value = objects.apply(name, &Apply::new(&manager).force(), crd).await?;
        while !is_established(&applied) {
            tokio::time::sleep(POLL).await;
            applied = objects.get(name).await?.ok_or_else(|| format!("CRD {name} was deleted"))?;
        }
    }
    Ok(())
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
