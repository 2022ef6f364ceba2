//! The garbage collector: deletes dependents with their owners, and nothing else.

use serde_json::{Value, json};

use super::*;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with its controllers.
struct World {
    servers: Servers,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orlop.db");
        let servers = Servers::on(&[Storage::Sqlite { path, durability: Durability::Process }]).await;
        Self { servers, _folder: folder }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        call(&self.servers.apis[0], method, path, &body).await
    }

    async fn make(&self, path: &str, body: Value) -> Value {
        let (code, made) = self.call(Method::POST, path, body).await;
        assert_eq!(code, 201, "{made}");
        made
    }

    /// A ConfigMap with these owners.
    async fn map(&self, name: &str, owners: &[Value]) -> Value {
        self.make(MAPS, json!({"metadata": {"name": name, "ownerReferences": owners}})).await
    }

    async fn get(&self, path: &str) -> Option<Value> {
        match self.call(Method::GET, path, Value::Null).await {
            (200, object) => Some(object),
            (404, _) => None,
            other => panic!("{other:?}"),
        }
    }

    async fn get_map(&self, name: &str) -> Option<Value> {
        self.get(&format!("{MAPS}/{name}")).await
    }

    async fn delete(&self, path: &str, propagation: &str) {
        let (code, answer) = self.call(Method::DELETE, path, json!({"propagationPolicy": propagation})).await;
        assert_eq!(code, 200, "{answer}");
    }

    async fn delete_map(&self, name: &str, propagation: &str) {
        self.delete(&format!("{MAPS}/{name}"), propagation).await;
    }

    async fn merge(&self, path: &str, patch: Value) {
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(path)
            .header("content-type", "application/merge-patch+json")
            .body(Full::from(patch.to_string()))
            .unwrap();
        let response = self.servers.apis[0].clone().call(request).await.unwrap();
        assert_eq!(response.status(), 200);
    }

    async fn gone(&self, name: &str) {
        until(&format!("{name} is gone"), async || self.get_map(name).await.is_none()).await;
    }
}

/// A reference to an object, which it blocks.
fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

fn owners(object: &Value) -> Vec<&str> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().filter_map(|reference| reference["name"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_go_with_their_last_owner() {
    let world = World::new().await;
    let (one, two) = (world.map("one", &[]).await, world.map("two", &[]).await);
    let only = world.map("only", &[reference(&one)]).await;
    world.map("deeper", &[reference(&only)]).await;
    world.map("both", &[reference(&one), reference(&two)]).await;
    world.map("nobody-s", &[]).await;
    world.delete_map("one", "Background").await;
    world.gone("only").await;
    world.gone("deeper").await;
    until("the other owner is left", async || {
        world.get_map("both").await.is_some_and(|map| owners(&map) == ["two"])
    })
    .await;
    world.delete_map("two", "Background").await;
    world.gone("both").await;
    assert!(world.get_map("nobody-s").await.is_some());
    world.servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_in_foreground_deletion_goes_last() {
    let world = World::new().await;
    let owner = world.map("owner", &[]).await;
    let middle = world.map("middle", &[reference(&owner)]).await;
    let body = json!({"metadata": {
        "name": "held", "ownerReferences": [reference(&middle)], "finalizers": ["example.com/hold"],
    }});
    world.make(MAPS, body).await;
    world.delete_map("owner", "Foreground").await;
    until("the deepest is to go", async || {
        world.get_map("held").await.is_some_and(|held| held["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    for waiting in ["owner", "middle"] {
        let object = world.get_map(waiting).await.expect("it waits");
        assert_eq!(object["metadata"]["finalizers"], json!(["foregroundDeletion"]), "{waiting}");
    }
    world.merge(&format!("{MAPS}/held"), json!({"metadata": {"finalizers": null}})).await;
    world.gone("owner").await;
    assert!(world.get_map("middle").await.is_none() && world.get_map("held").await.is_none());
    world.servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphans_stay_without_their_owner_reference() {
    let world = World::new().await;
    let (owner, other) = (world.map("owner", &[]).await, world.map("other", &[]).await);
    world.map("left", &[reference(&owner)]).await;
    world.map("shared", &[reference(&owner), reference(&other)]).await;
    world.delete_map("owner", "Orphan").await;
    world.gone("owner").await;
    assert_eq!(owners(&world.get_map("left").await.unwrap()), [""; 0]);
    assert_eq!(owners(&world.get_map("shared").await.unwrap()), ["other"]);
    world.servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_in_foreground_deletion_goes() {
    let world = World::new().await;
    let one = world.map("one", &[]).await;
    let two = world.map("two", &[reference(&one)]).await;
    let patch = json!({"metadata": {"ownerReferences": [reference(&two)]}});
    world.merge(&format!("{MAPS}/one"), patch).await;
    world.delete_map("one", "Foreground").await;
    world.gone("one").await;
    world.gone("two").await;
    world.servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_that_do_not_exist_or_have_another_uid_do_not_count() {
    let world = World::new().await;
    let living = world.map("living", &[]).await;
    let mut another = reference(&living);
    another["uid"] = "11111111-2222-3333-4444-555555555555".into();
    world.map("of-another", &[another.clone()]).await;
    another["name"] = "never-there".into();
    world.map("of-nobody", &[another.clone()]).await;
    let mut unknown = another.clone();
    unknown["kind"] = "Unheard".into();
    world.map("of-an-unknown-kind", &[unknown]).await;
    world.map("of-both", &[another, reference(&living)]).await;
    world.gone("of-another").await;
    world.gone("of-nobody").await;
    until("the absent owner is no owner", async || {
        world.get_map("of-both").await.is_some_and(|map| owners(&map) == ["living"])
    })
    .await;
    assert!(world.get_map("of-an-unknown-kind").await.is_some());
    world.servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_in_another_namespace_is_invalid_and_reported_by_an_event() {
    let world = World::new().await;
    let owner = world.map("owner", &[]).await;
    world.make("/api/v1/namespaces", json!({"metadata": {"name": "elsewhere"}})).await;
    let body = json!({"metadata": {"name": "lost", "ownerReferences": [reference(&owner)]}});
    world.make("/api/v1/namespaces/elsewhere/configmaps", body).await;
    until("it is collected", async || {
        world.get("/api/v1/namespaces/elsewhere/configmaps/lost").await.is_none()
    })
    .await;
    let events = world.get("/api/v1/namespaces/elsewhere/events").await.unwrap();
    let event = &events["items"][0];
    assert_eq!(event["reason"], "OwnerRefInvalidNamespace");
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        event["message"],
        format!(
            "ownerRef [v1/ConfigMap, namespace: elsewhere, name: owner, uid: {uid}] does not exist in namespace \"elsewhere\""
        )
    );
    assert!(world.get_map("owner").await.is_some());
    world.servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_own_and_are_owned() {
    let world = World::new().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let ships = "/apis/example.com/v1/namespaces/default/ships";
    let version = |name: &str, is_stored: bool| {
        json!({"name": name, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let body = json!({
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "ships", "kind": "Ship"},
            "versions": [version("v1", true), version("v1alpha1", false)],
        },
    });
    world.make(definitions, body).await;
    let ship =
        |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": name}});
    let flag = world.make(ships, ship("flag")).await;
    let mut of_old_version = reference(&flag);
    of_old_version["apiVersion"] = "example.com/v1alpha1".into();
    world.map("cargo", &[reference(&flag)]).await;
    world.map("old-cargo", &[of_old_version]).await;
    let mut escort = ship("escort");
    escort["metadata"]["ownerReferences"] = json!([reference(&flag)]);
    world.make(ships, escort).await;
    world.delete(&format!("{ships}/flag"), "Foreground").await;
    world.gone("cargo").await;
    world.gone("old-cargo").await;
    until("the fleet is gone", async || {
        world.get(ships).await.is_some_and(|list| list["items"] == json!([]))
    })
    .await;

    let last = world.make(ships, ship("last")).await;
    world.map("last-cargo", &[reference(&last)]).await;
    world.delete(&format!("{definitions}/ships.example.com"), "Background").await;
    world.gone("last-cargo").await;
    world.servers.stop().await;
}
