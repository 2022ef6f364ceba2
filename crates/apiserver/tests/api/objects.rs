//! One object: create, get, update, patch, delete.

use http::Method;
use serde_json::json;

use crate::client::{CONFIGMAPS, Client, version};

fn at(name: &str) -> String {
    format!("{CONFIGMAPS}/{name}")
}

#[tokio::test]
async fn a_created_object_is_read_back_as_it_was_answered() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).await;
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(made["apiVersion"], "v1");
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert!(made["metadata"]["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(client.get(&at("a")).await.json(), made);
}

#[tokio::test]
async fn a_second_create_and_a_missing_object_are_refused_in_kubernetes_words() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let again = client.post(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(again.failure(), (409, "AlreadyExists".into(), "configmaps \"a\" already exists".into()));
    let missing = client.get(&at("b")).await;
    assert_eq!(missing.failure(), (404, "NotFound".into(), "configmaps \"b\" not found".into()));
    assert_eq!(missing.json()["details"], json!({"name": "b", "kind": "configmaps"}));
    let nowhere =
        client.post("/api/v1/namespaces/none/configmaps", &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(nowhere.failure().2, "namespaces \"none\" not found");
}

#[tokio::test]
async fn the_server_decides_uid_and_times_and_not_the_client() {
    let client = Client::new().await;
    let made = client
        .create(
            CONFIGMAPS,
            &json!({"metadata": {
                "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z",
                "deletionTimestamp": "2001-01-01T00:00:00Z",
            }}),
        )
        .await;
    assert_ne!(made["metadata"]["uid"], "mine");
    assert_ne!(made["metadata"]["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert!(made["metadata"].get("deletionTimestamp").is_none());
}

#[tokio::test]
async fn a_name_can_be_generated() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"generateName": "gen-"}})).await;
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
    let nameless = client.post(CONFIGMAPS, &json!({"metadata": {}})).await;
    assert_eq!(nameless.code, 422);
    assert_eq!(nameless.json()["details"]["causes"][0]["field"], "metadata.name");
}

#[tokio::test]
async fn name_and_namespace_must_be_those_of_the_path() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let other = client.post(CONFIGMAPS, &json!({"metadata": {"name": "b", "namespace": "other"}})).await;
    assert_eq!(other.failure().0, 400);
    let renamed = client.put(&at("a"), &json!({"metadata": {"name": "b"}})).await;
    assert_eq!(renamed.failure().2, "the name of the object (b) does not match the name on the URL (a)");
}

#[tokio::test]
async fn an_update_with_a_stale_version_conflicts() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let mut next = made.clone();
    next["data"] = json!({"x": "1"});
    let updated = client.put(&at("a"), &next).await;
    assert_eq!(updated.code, 200);
    assert!(updated.version() > version(&made));
    next["data"] = json!({"x": "2"});
    let (code, reason, message) = client.put(&at("a"), &next).await.failure();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert_eq!(
        message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    next["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(client.put(&at("a"), &next).await.json()["data"]["x"], "2");
    let stranger = json!({"metadata": {"name": "a", "uid": "other"}});
    assert_eq!(client.put(&at("a"), &stranger).await.failure().0, 409);
    assert_eq!(client.put(&at("none"), &json!({"metadata": {"name": "none"}})).await.code, 404);
}

#[tokio::test]
async fn a_write_that_changes_nothing_makes_no_new_version() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).await;
    let before = client.store.clock().await.unwrap().current;
    assert_eq!(client.put(&at("a"), &made).await.json(), made);
    assert_eq!(client.merge(&at("a"), &json!({"data": {"x": "1"}})).await.json(), made);
    assert_eq!(client.json_patch(&at("a"), &json!([])).await.json(), made);
    assert_eq!(client.store.clock().await.unwrap().current, before);
}

#[tokio::test]
async fn patches_change_what_they_name() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}})).await;
    let merged = client.merge(&at("a"), &json!({"data": {"x": null, "z": "3"}})).await;
    assert_eq!(merged.json()["data"], json!({"y": "2", "z": "3"}));
    let patch = json!([{"op": "test", "path": "/data/y", "value": "2"}, {"op": "remove", "path": "/data/y"}]);
    assert_eq!(client.json_patch(&at("a"), &patch).await.json()["data"], json!({"z": "3"}));
    let failed = client.json_patch(&at("a"), &patch).await;
    assert!((400..500).contains(&failed.failure().0));
    let stale = client.merge(&at("a"), &json!({"metadata": {"resourceVersion": "1"}})).await;
    assert_eq!(stale.failure().1, "Conflict");
    let wrong = client.send(Method::PATCH, &at("a"), &[("content-type", "application/json")], b"{}").await;
    assert_eq!(wrong.failure().1, "UnsupportedMediaType");
    assert_eq!(client.merge(&at("none"), &json!({})).await.code, 404);
}

#[tokio::test]
async fn concurrent_patches_are_all_applied() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let patches = (0..8).map(|i| {
        let client = &client;
        async move { client.merge(&at("a"), &json!({"data": {format!("k{i}"): "v"}})).await.code }
    });
    let codes = futures::future::join_all(patches).await;
    assert_eq!(codes, vec![200; 8]);
    assert_eq!(client.get(&at("a")).await.json()["data"].as_object().unwrap().len(), 8);
}

#[tokio::test]
async fn a_deletion_names_what_it_deleted() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let deleted = client.delete(&at("a")).await;
    let details = json!({"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]});
    assert_eq!((deleted.code, deleted.json()["details"].clone()), (200, details));
    assert_eq!(deleted.json()["status"], "Success");
    assert_eq!(client.delete(&at("a")).await.code, 404);
}

#[tokio::test]
async fn a_deletion_heeds_its_preconditions() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    for wrong in [json!({"uid": "x"}), json!({"resourceVersion": "1"})] {
        let body = json!({"preconditions": wrong}).to_string();
        let refused = client.send(Method::DELETE, &at("a"), &[], body.as_bytes()).await;
        assert_eq!(refused.failure().1, "Conflict");
    }
    let right =
        json!({"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]});
    let body = json!({ "preconditions": right }).to_string();
    assert_eq!(client.send(Method::DELETE, &at("a"), &[], body.as_bytes()).await.code, 200);
}

#[tokio::test]
async fn finalizers_hold_a_deletion_until_they_are_gone() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a", "finalizers": ["a.io/b"]}})).await;
    let waiting = client.delete(&at("a")).await.json();
    assert_eq!(waiting["kind"], "ConfigMap");
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(client.delete(&at("a")).await.json(), waiting, "a second deletion changes nothing");
    let more = client.merge(&at("a"), &json!({"metadata": {"finalizers": ["a.io/b", "c.io/d"]}})).await;
    assert_eq!(more.code, 422);
    let last = client.merge(&at("a"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(last.code, 200);
    assert_eq!(client.get(&at("a")).await.code, 404);
}

#[tokio::test]
async fn propagation_becomes_a_finalizer() {
    let client = Client::new().await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
        let waiting = client.delete(&format!("{}?propagationPolicy={policy}", at("a"))).await.json();
        assert_eq!(waiting["metadata"]["finalizers"], json!([finalizer]));
        assert_eq!(client.delete(&format!("{}?propagationPolicy=Background", at("a"))).await.code, 200);
        assert_eq!(client.get(&at("a")).await.code, 404);
    }
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let nonsense = client.delete(&format!("{}?propagationPolicy=Foo", at("a"))).await;
    assert_eq!(nonsense.failure().1, "Invalid");
}

#[tokio::test]
async fn a_dry_run_answers_and_writes_nothing() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "there"}})).await;
    let before = client.store.clock().await.unwrap().current;
    let made = client.post(&format!("{CONFIGMAPS}?dryRun=All"), &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(made.code, 201);
    assert!(made.json()["metadata"].get("resourceVersion").is_none());
    let twice =
        client.post(&format!("{CONFIGMAPS}?dryRun=All"), &json!({"metadata": {"name": "there"}})).await;
    assert_eq!(twice.failure().1, "AlreadyExists");
    let there = format!("{}?dryRun=All", at("there"));
    assert_eq!(client.merge(&there, &json!({"data": {"x": "1"}})).await.json()["data"]["x"], "1");
    assert_eq!(client.delete(&there).await.code, 200);
    assert_eq!(client.post(&format!("{CONFIGMAPS}?dryRun=x"), &json!({})).await.failure().1, "Invalid");
    assert_eq!(client.store.clock().await.unwrap().current, before);
    assert_eq!(client.get(&at("a")).await.code, 404);
}

#[tokio::test]
async fn an_update_creates_a_missing_lease() {
    let client = Client::new().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let made = client.put(path, &json!({"metadata": {"name": "l"}})).await;
    assert_eq!(made.code, 201);
    let blind = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    assert_eq!(client.put(path, &blind).await.failure().1, "Invalid", "an update needs a version");
    let mut next = made.json();
    next["spec"] = json!({"holderIdentity": "me"});
    assert_eq!(client.put(path, &next).await.code, 200);
}

#[tokio::test]
async fn a_namespace_keeps_its_status_apart_and_ends_in_two_steps() {
    let client = Client::new().await;
    let made = client
        .create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}, "status": {"phase": "X"}}))
        .await;
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    let waiting = client.delete("/api/v1/namespaces/n").await.json();
    assert_eq!(waiting["status"]["phase"], "Terminating");
    let late = client.post("/api/v1/namespaces/n/configmaps", &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(late.failure().1, "Forbidden");
    let mut last = waiting.clone();
    last["spec"] = json!({"finalizers": []});
    assert_eq!(client.put("/api/v1/namespaces/n/finalize", &last).await.code, 200);
    assert_eq!(client.get("/api/v1/namespaces/n").await.code, 404);
    assert_eq!(client.delete("/api/v1/namespaces/default").await.failure().1, "Forbidden");
}

#[tokio::test]
async fn methods_and_paths_that_do_not_exist_say_so() {
    let client = Client::new().await;
    assert_eq!(client.post(&at("a"), &json!({})).await.failure().0, 405);
    assert_eq!(client.put(CONFIGMAPS, &json!({})).await.failure().0, 405);
    assert_eq!(client.delete("/api/v1/namespaces").await.failure().0, 405);
    assert_eq!(client.post("/api/v1/configmaps", &json!({"metadata": {"name": "a"}})).await.failure().0, 405);
    for path in
        ["/api/v1/foos", "/api/v2", "/apis/none/v1/x", "/api/v1/namespaces/default/configmaps/a/status", "/x"]
    {
        assert_eq!(client.get(path).await.code, 404, "{path}");
    }
}

#[tokio::test]
async fn a_strategic_merge_patch_merges_lists_by_the_schema() {
    let client = Client::new().await;
    let finalizers = ["x.io/a", "x.io/b", "x.io/c"];
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a", "finalizers": finalizers}})).await;
    let path = format!("{CONFIGMAPS}/a");
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["x.io/a"],
        "$setElementOrder/finalizers": ["x.io/c", "x.io/e", "x.io/b"],
        "finalizers": ["x.io/e"],
    }});
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    let answer = client.send(Method::PATCH, &path, &headers, patch.to_string().as_bytes()).await;
    assert_eq!(answer.code, 200, "{}", answer.json());
    assert_eq!(answer.json()["metadata"]["finalizers"], json!(["x.io/c", "x.io/e", "x.io/b"]));
    let answer = client.send(Method::PATCH, &path, &headers, b"{\"$patch\":\"merge\"}").await;
    assert_eq!(answer.code, 400, "{}", answer.json());
}
