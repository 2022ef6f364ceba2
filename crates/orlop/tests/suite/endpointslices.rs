//! Endpoints and EndpointSlices of Services under load and over a restart.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use k8s_openapi::api::{
    core::v1::{Endpoints, Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::{await_condition, conditions::is_deleted},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::kube_rs::{client, client_for_pods};
use crate::server::{PATIENCE, Server};

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the test writes what the type has")
}

fn service(name: &str, selector: Value) -> Service {
    let spec = json!({"selector": selector, "ports": [{"port": 80}]});
    read(json!({"metadata": {"name": name}, "spec": spec}))
}

async fn make_pod(client: &Client, number: usize) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let name = format!("web-{number}");
    let container = json!({"name": "c", "image": "i"});
    let spec = json!({"nodeName": "one", "automountServiceAccountToken": false, "containers": [container]});
    let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec});
    pods.create(&PostParams::default(), &read(pod)).await.expect("a Pod can be made");
    let address = format!("10.1.0.{number}");
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let status =
        json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": ready});
    let status = Patch::Merge(json!({"status": status}));
    pods.patch_status(&name, &PatchParams::default(), &status).await.expect("it has a status");
}

/// The number of endpoints of each slice of a Service, and all addresses.
async fn slices(client: &Client, service: &str) -> (Vec<usize>, BTreeSet<String>) {
    let slices = Api::<EndpointSlice>::default_namespaced(client.clone());
    let own = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let slices = slices.list(&own).await.expect("they can be listed");
    let mut sizes: Vec<usize> = slices.iter().map(|slice| slice.endpoints.len()).collect();
    sizes.sort_unstable();
    let endpoints = slices.items.into_iter().flat_map(|slice| slice.endpoints);
    (sizes, endpoints.flat_map(|endpoint| endpoint.addresses).collect())
}

#[tokio::test]
async fn every_pod_is_in_exactly_one_endpointslice_under_load() {
    const PODS: usize = 130;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("up", &folder.path().join("data"), &[]).await;
    let client = client_for_pods(&server).await;
    let nodes = Api::<Node>::all(client.clone());
    nodes.create(&PostParams::default(), &read(json!({"metadata": {"name": "one"}}))).await.unwrap();
    let services = Api::<Service>::default_namespaced(client.clone());
    services.create(&PostParams::default(), &service("web", json!({"app": "web"}))).await.unwrap();
    stream::iter(0..PODS).for_each_concurrent(8, |number| make_pod(&client, number)).await;
    let endpoints = Api::<Endpoints>::default_namespaced(client.clone());
    let has_all = |endpoints: Option<&Endpoints>| {
        let subsets = endpoints.and_then(|endpoints| endpoints.subsets.as_ref()).into_iter().flatten();
        subsets.flat_map(|subset| &subset.addresses).map(Vec::len).sum::<usize>() == PODS
    };
    timeout(PATIENCE, await_condition(endpoints, "web", has_all)).await.expect("all are there").unwrap();
    let all = async {
        while slices(&client, "web").await.1.len() < PODS {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, all).await.expect("all are there");
    let (sizes, _) = slices(&client, "web").await;
    assert_eq!(sizes.iter().sum::<usize>(), PODS, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 100), "{sizes:?}");
}

#[tokio::test]
async fn endpoints_of_a_deleted_service_are_removed_at_the_next_start_and_manual_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut server = Server::start("up", &data, &[]).await;
    let own = client(&server).await;
    let services = Api::<Service>::default_namespaced(own.clone());
    services.create(&PostParams::default(), &service("web", json!({"app": "web"}))).await.unwrap();
    let endpoints = Api::<Endpoints>::default_namespaced(own);
    let is_there = |endpoints: Option<&Endpoints>| endpoints.is_some();
    timeout(PATIENCE, await_condition(endpoints.clone(), "web", is_there)).await.unwrap().unwrap();
    let alone = json!({"metadata": {"name": "alone"}, "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}]});
    endpoints.create(&PostParams::default(), &read(alone)).await.unwrap();
    server.stop("TERM").await;

    let mut server = Server::start("up", &data, &["--controllers="]).await;
    let services = Api::<Service>::default_namespaced(client(&server).await);
    services.delete("web", &DeleteParams::default()).await.unwrap();
    server.stop("TERM").await;

    let server = Server::start("up", &data, &[]).await;
    let endpoints = Api::<Endpoints>::default_namespaced(client(&server).await);
    let uid = endpoints.get_opt("web").await.unwrap().and_then(|left| left.uid());
    if let Some(uid) = uid {
        let gone = await_condition(endpoints.clone(), "web", is_deleted(&uid));
        timeout(PATIENCE, gone).await.expect("what is left goes").unwrap();
    }
    endpoints.get("alone").await.expect("nobody deletes what somebody wrote");
}
