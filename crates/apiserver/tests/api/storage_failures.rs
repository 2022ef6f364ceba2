//! Objects that the store refuses, and a database that fails: the responses to clients.

use http::Method;
use serde_json::{Value, json};
use store::Error;

use crate::client::{CONFIGMAPS, Client};
use crate::faulty_engine::Faulty;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Just over a third of the size limit.
fn large() -> String {
    "x".repeat(1_100_000)
}

fn deployment() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web", "args": [large(), large()]}]},
        },
    }})
}

fn too_large(answer: &crate::client::Answer) {
    let (code, reason, message) = answer.failure();
    assert_eq!((code, &*reason), (413, "RequestEntityTooLarge"), "{message}");
    assert!(message.starts_with("Request entity too large: the object would take "), "{message}");
    assert!(message.ends_with(" bytes in storage, the limit is 3145728"), "{message}");
}

#[tokio::test]
async fn an_object_that_patches_make_too_large_for_the_store_is_refused_and_stays_as_it_was() {
    let client = Client::new().await;
    client.create(DEPLOYMENTS, &deployment()).await;
    let path = format!("{DEPLOYMENTS}/web");
    let before = client.get(&path).await.version();
    let add = json!([{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": large()}]);
    too_large(&client.json_patch(&path, &add).await);
    let status = json!({"status": {"conditions": [
        {"type": "Big", "status": "True", "reason": "Big", "message": large()},
    ]}});
    too_large(&client.merge(&format!("{path}/status"), &status).await);
    let headers = [("content-type", "application/apply-patch+yaml")];
    let mut applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    applied["spec"] = json!({"template": {"spec": {"initContainers": [
        {"name": "first", "image": "web", "args": [large()]},
    ]}}});
    let target = format!("{path}?fieldManager=other");
    too_large(&client.send(Method::PATCH, &target, &headers, applied.to_string().as_bytes()).await);
    assert_eq!(client.get(&path).await.version(), before, "a refused write changes nothing");
    let shrink = json!([{"op": "remove", "path": "/spec/template/spec/containers/0/args/1"}]);
    assert_eq!(client.json_patch(&path, &shrink).await.code, 200);
    assert_eq!(client.json_patch(&path, &add).await.code, 200);
    assert_eq!(client.delete(&path).await.code, 200);
}

#[tokio::test]
async fn an_object_with_too_many_labels_is_refused() {
    let client = Client::new().await;
    let labels = |count: usize| -> Value { (0..count).map(|n| (format!("l{n}"), json!(""))).collect() };
    let refused =
        client.post(CONFIGMAPS, &json!({"metadata": {"name": "a", "labels": labels(10_001)}})).await;
    let message = "Request entity too large: the object has 10001 labels, the limit is 10000";
    assert_eq!(refused.failure(), (413, "RequestEntityTooLarge".into(), message.into()));
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a", "labels": labels(10_000)}})).await;
}

#[tokio::test]
async fn a_commit_of_unknown_outcome_is_a_timeout_and_the_databases_own_words_stay_in_the_log() {
    let (client, engine) = Faulty::server(|builder| builder).await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let reason = || "PostgreSQL says: terminating connection at 192.0.2.7".to_owned();
    let path = format!("{CONFIGMAPS}/a");
    let faults = [
        (
            Error::OutcomeUnknown { reason: reason() },
            (504, "Timeout", "Timeout: the server could not confirm the write; it may have been committed"),
        ),
        (
            Error::Unavailable { reason: reason() },
            (503, "ServiceUnavailable", "the database is unavailable; the server's log has the reason"),
        ),
    ];
    for (fault, (code, reason, message)) in faults {
        *engine.fault.lock().unwrap() = Some(fault);
        let answers = [
            client.post(CONFIGMAPS, &json!({"metadata": {"generateName": "made-"}})).await,
            client.merge(&path, &json!({"data": {"x": "1"}})).await,
            client.delete(&path).await,
        ];
        for answer in answers {
            assert_eq!(answer.failure(), (code, reason.to_owned(), message.to_owned()));
            // A client that repeated a create with generateName would create two objects.
            assert!(!answer.headers.contains_key("retry-after"));
        }
    }
}
