//! PodDisruptionBudgets whose Pods have owners of many kinds: the controller reads the expected number of
//! Pods from the scale of the owners.

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet, StatefulSet},
    core::v1::{Pod, ReplicationController},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind, NamespaceResourceScope},
    runtime::wait::await_condition,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::kube_rs::client_for_pods;
use crate::server::{PATIENCE, Server};

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the test writes what the type has")
}

async fn make<T>(client: &Client, value: Value) -> T
where
    T: Clone + std::fmt::Debug + DeserializeOwned + Serialize + Resource<Scope = NamespaceResourceScope>,
    T::DynamicType: Default,
{
    let api = Api::<T>::default_namespaced(client.clone());
    api.create(&PostParams::default(), &read(value)).await.expect("it can be made")
}

/// An owner whose scale is the expected number of Pods.
fn owned_by(api_version: &str, kind: &str, owner: &impl ResourceExt) -> Value {
    let (name, uid) = (owner.name_any(), owner.uid());
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}])
}

/// A workload of this many Pods, none of which exist yet.
fn workload(name: &str, replicas: i32) -> Value {
    let labels = json!({"of": name});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "serviceName": "s", "template": template});
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn make_pod(client: &Client, name: &str, owners: Value) {
    let metadata = json!({"name": name, "labels": {"app": "all"}, "ownerReferences": owners});
    let spec = json!({"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]});
    make::<Pod>(client, json!({"metadata": metadata, "spec": spec})).await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(ready)).await.expect("it has a status");
}

/// A custom object with a scale subresource.
async fn make_fleet(client: &Client, replicas: i32) -> DynamicObject {
    let definitions = Api::<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    >::all(client.clone());
    let number = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": number, "status": number}});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"scale": scale},
    });
    let names = json!({"plural": "fleets", "singular": "fleet", "kind": "Fleet", "listKind": "FleetList"});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = read(json!({"metadata": {"name": "fleets.example.com"}, "spec": spec}));
    definitions.create(&PostParams::default(), &definition).await.expect("it can be defined");
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Fleet"));
    let fleets = Api::<DynamicObject>::default_namespaced_with(client.clone(), &kind);
    let fleet = json!({
        "apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "fleet"}, "spec": {"replicas": replicas},
    });
    fleets.create(&PostParams::default(), &read(fleet)).await.expect("the kind is served")
}

#[tokio::test]
async fn a_disruption_budget_takes_the_expected_pods_from_the_scale_of_their_owners() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("up", &folder.path().join("data"), &[]).await;
    let client = client_for_pods(&server).await;
    let spec = json!({"minAvailable": "50%", "selector": {"matchLabels": {"app": "all"}}});
    make::<PodDisruptionBudget>(&client, json!({"metadata": {"name": "all"}, "spec": spec})).await;

    let deployment: Deployment = make(&client, workload("deployment", 10)).await;
    let mut behind = workload("set", 3);
    behind["metadata"]["ownerReferences"] = owned_by("apps/v1", "Deployment", &deployment);
    let set: ReplicaSet = make(&client, behind).await;
    let alone: ReplicaSet = make(&client, workload("alone", 20)).await;
    let stateful: StatefulSet = make(&client, workload("stateful", 30)).await;
    let controller = json!({"metadata": {"name": "old"}, "spec": {"replicas": 40, "selector": {"of": "old"}, "template": {
        "metadata": {"labels": {"of": "old"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    }}});
    let controller: ReplicationController = make(&client, controller).await;
    let fleet = make_fleet(&client, 100).await;
    make_pod(&client, "a", owned_by("apps/v1", "ReplicaSet", &set)).await;
    make_pod(&client, "b", owned_by("apps/v1", "ReplicaSet", &set)).await;
    make_pod(&client, "c", owned_by("apps/v1", "ReplicaSet", &alone)).await;
    make_pod(&client, "d", owned_by("apps/v1", "StatefulSet", &stateful)).await;
    make_pod(&client, "e", owned_by("v1", "ReplicationController", &controller)).await;
    make_pod(&client, "f", owned_by("example.com/v1", "Fleet", &fleet)).await;

    let budgets = Api::<PodDisruptionBudget>::default_namespaced(client);
    let is_counted = |budget: Option<&PodDisruptionBudget>| {
        let status = budget.and_then(|budget| budget.status.as_ref());
        status.is_some_and(|status| {
            (status.expected_pods, status.desired_healthy, status.current_healthy) == (200, 100, 6)
        })
    };
    let counted = timeout(PATIENCE, await_condition(budgets, "all", is_counted)).await;
    counted.expect("the budget is counted").expect("it can be watched");
}
