//! Creates in missing and terminating namespaces, and the order of checks.

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;

/// A server with the namespaces `live` and `term` (terminating); both have a ConfigMap `there`.
async fn client() -> Client {
    let client = Client::new().await;
    for namespace in ["live", "term"] {
        client.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        let configmaps = format!("/api/v1/namespaces/{namespace}/configmaps");
        client.create(&configmaps, &json!({"metadata": {"name": "there"}})).await;
    }
    assert_eq!(client.delete("/api/v1/namespaces/term").await.code, 200);
    client
}

fn configmap(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test]
async fn a_terminating_namespace_is_named_as_the_cause() {
    let client = client().await;
    let late = client.post("/api/v1/namespaces/term/configmaps", &configmap("a")).await;
    let message = "configmaps \"a\" is forbidden: unable to create new content in namespace term because it is \
                   being terminated";
    assert_eq!(late.failure(), (403, "Forbidden".into(), message.into()));
    let cause = json!({
        "reason": "NamespaceTerminating",
        "message": "namespace term is being terminated",
        "field": "metadata.namespace",
    });
    assert_eq!(late.json()["details"], json!({"name": "a", "kind": "configmaps", "causes": [cause]}));
    let nowhere = client.post("/api/v1/namespaces/none/configmaps", &configmap("a")).await;
    assert_eq!(nowhere.failure(), (404, "NotFound".into(), "namespaces \"none\" not found".into()));
    assert_eq!(nowhere.json()["details"], json!({"name": "none", "kind": "namespaces"}));
}

/// The responses of kube-apiserver 1.35 to creates with several errors.
#[tokio::test]
async fn the_namespace_is_looked_at_after_the_form_and_before_the_content() {
    let client = client().await;
    let negative = json!({"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": -1}});
    let rows = [
        ("configmaps", json!({"metadata": {"name": "a", "namespace": "other"}}), Some("BadRequest")),
        ("configmaps", json!({"metadata": {"name": "a"}, "data": 5}), Some("BadRequest")),
        ("configmaps", json!({"metadata": {"name": "a", "resourceVersion": "5"}}), None),
        ("configmaps", configmap("a"), None),
        ("configmaps", configmap("BAD_"), None),
        ("configmaps", configmap("there"), None),
        ("configmaps?dryRun=All", configmap("a"), None),
        ("configmaps?dryRun=All", configmap("BAD_"), None),
        ("configmaps?dryRun=All", configmap("there"), None),
        ("configmaps", json!({"metadata": {"generateName": "gen-"}}), None),
        ("configmaps", json!({"metadata": {}}), None),
        ("leases", negative, None),
    ];
    for (namespace, refusal) in [("none", "NotFound"), ("term", "Forbidden")] {
        for (resource, object, earlier) in &rows {
            let base = if *resource == "leases" { "/apis/coordination.k8s.io/v1" } else { "/api/v1" };
            let path = format!("{base}/namespaces/{namespace}/{resource}");
            let answer = client.post(&path, object).await;
            assert_eq!(answer.failure().1, earlier.unwrap_or(refusal), "{path} {object}");
        }
    }
    let live = "/api/v1/namespaces/live/configmaps";
    let both = json!({"metadata": {"name": "there", "labels": {"a": "!!"}}});
    assert_eq!(client.post(live, &both).await.failure().1, "Invalid");
    let versioned = json!({"metadata": {"name": "BAD_", "resourceVersion": "5"}});
    assert_eq!(client.post(live, &versioned).await.failure().1, "Invalid");
    let versioned = json!({"metadata": {"name": "there", "resourceVersion": "5"}});
    assert_eq!(client.post(live, &versioned).await.failure().1, "BadRequest");
    let version_of_nothing = json!({"metadata": {"name": "a", "resourceVersion": "0"}});
    assert_eq!(client.post(live, &version_of_nothing).await.code, 201);
}

#[tokio::test]
async fn an_object_without_a_name_is_called_by_what_it_has() {
    let client = client().await;
    for (metadata, name) in [(json!({"generateName": "gen-"}), "gen-"), (json!({}), "Unknown")] {
        let answer =
            client.post("/api/v1/namespaces/term/configmaps", &json!({"metadata": metadata})).await.json();
        assert_eq!(answer["details"]["name"], name);
        assert!(answer["message"].as_str().unwrap().contains(&format!("configmaps {name:?} is forbidden")));
    }
}

#[tokio::test]
async fn updates_that_create_need_the_namespace_and_others_do_not() {
    let client = client().await;
    let lease = |namespace: &str| format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/a");
    assert_eq!(
        client.put(&lease("none"), &configmap("a")).await.failure().2,
        "namespaces \"none\" not found"
    );
    assert_eq!(client.put(&lease("term"), &configmap("a")).await.failure().1, "Forbidden");
    let absent = client.put("/api/v1/namespaces/none/configmaps/a", &configmap("a")).await;
    assert_eq!(absent.failure().2, "configmaps \"a\" not found");
    let there = "/api/v1/namespaces/term/configmaps/there";
    assert_eq!(
        client.put(there, &json!({"metadata": {"name": "there"}, "data": {"x": "1"}})).await.code,
        200
    );
    assert_eq!(client.send(Method::DELETE, there, &[], b"").await.code, 200);
}
