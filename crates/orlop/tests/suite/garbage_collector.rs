//! Cascading and namespace deletions that a killed server had begun: they finish after the next start, and
//! delete nothing else.

use std::path::Path;

use ::server::{Config, Storage, loopback};
use apiserver::ApiService;
use futures::StreamExt;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use store::Durability;
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    kubectl,
    server::{PATIENCE, Server},
};

/// Dependents of the owner.
const OWNED: usize = 10_000;
/// Objects of a namespace.
const INSIDE: usize = 10_000;
/// Objects that stay.
const FEW: usize = 50;
/// Disables the controller that creates objects in each namespace.
const ARGUMENTS: [&str; 3] =
    ["--durability", "process", "--controllers=*,-root-ca-certificate-publisher-controller"];

/// Creates objects in a database that no server has opened yet.
struct Filling(ApiService);

impl Filling {
    async fn make(&self, path: &str, object: Value) -> Value {
        let request =
            http::Request::post(path).body(Full::from(object.to_string())).expect("the path is one");
        let response = self.0.clone().call(request).await.expect("it answers");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("the answer is complete").to_bytes();
        assert_eq!(code, 201, "{}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).expect("an answer is JSON")
    }

    /// Many ConfigMaps of a namespace with these owners.
    async fn make_many(&self, count: usize, prefix: &str, namespace: &str, owners: &[&Value]) {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let owners: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
        let one = |number: usize| {
            let metadata = json!({"name": format!("{prefix}-{number}"), "ownerReferences": owners});
            self.make(&path, json!({"metadata": metadata}))
        };
        let all: Vec<_> = (0..count).map(one).collect();
        futures::stream::iter(all).buffer_unordered(64).for_each(|_| async {}).await;
    }
}

fn reference(owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]})
}

async fn fill(folder: &Path) {
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let storage = Storage::Sqlite { path: folder.join("orlop.db"), durability: Durability::Process };
    let config = Config { storage, controllers: None, ..Config::in_memory() };
    let server = ::server::Server::start(config).await.expect("it opens");
    let filling = Filling(server.service(loopback::administrator()));
    filling.make("/api/v1/namespaces", json!({"metadata": {"name": "ending"}})).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let going = filling.make(maps, json!({"metadata": {"name": "going"}})).await;
    let staying = filling.make(maps, json!({"metadata": {"name": "staying"}})).await;
    filling.make_many(OWNED, "owned", "default", &[&going]).await;
    filling.make_many(FEW, "shared", "default", &[&going, &staying]).await;
    filling.make_many(FEW, "free", "default", &[]).await;
    filling.make_many(INSIDE, "inside", "ending", &[]).await;
    server.shutdown().await.expect("nothing fails");
}

/// The number of ConfigMaps in a namespace.
async fn count(server: &Server, namespace: &str) -> usize {
    let line = format!("get --raw /api/v1/namespaces/{namespace}/configmaps?limit=1");
    let list: Value = serde_json::from_str(&kubectl::run(server, &line).await).expect("a list is JSON");
    let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    list["items"].as_array().expect("a list has items").len() + usize::try_from(more).expect("it is small")
}

/// Waits until a condition holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async { while !holds().await {} };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn cascading_and_namespace_deletions_finish_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fill(&data).await;
    let mut server = Server::start("up", &data, &ARGUMENTS).await;
    let before = count(&server, "default").await;
    kubectl::run(&server, "delete namespace ending --wait=false").await;
    kubectl::run(&server, "delete configmap going --cascade=background").await;
    until("some are gone", async || count(&server, "default").await < before - 1).await;
    server.stop("KILL").await;

    let server = Server::start("up", &data, &ARGUMENTS).await;
    until("the namespace is gone", async || {
        kubectl::run(&server, "get namespace ending --ignore-not-found").await.is_empty()
    })
    .await;
    until("all that were owned are gone", async || count(&server, "default").await == 2 * FEW + 1).await;
    let left = "get configmaps --output=jsonpath={.items[*].metadata.ownerReferences[*].name}";
    until("no reference to the owner is left", async || {
        kubectl::run(&server, left).await.split_whitespace().eq(["staying"; FEW])
    })
    .await;
    assert_eq!(count(&server, "ending").await, 0);
    let names = kubectl::run(&server, "get configmaps --output=name").await;
    for (prefix, expected) in [("shared", FEW), ("free", FEW), ("staying", 1), ("owned", 0)] {
        let found = names.lines().filter(|name| name.contains(&format!("/{prefix}"))).count();
        assert_eq!(found, expected, "{prefix}");
    }
}
