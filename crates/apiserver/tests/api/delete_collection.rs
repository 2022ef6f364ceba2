//! deletecollection.

use http::Method;
use serde_json::json;

use crate::client::{CONFIGMAPS, Client};

#[tokio::test]
async fn a_selection_is_deleted_and_the_rest_stays() {
    let client = Client::new().await;
    for i in 0..700 {
        let labels = json!({"keep": if i % 7 == 0 { "yes" } else { "no" }});
        client.create(CONFIGMAPS, &json!({"metadata": {"name": format!("c{i:03}"), "labels": labels}})).await;
    }
    let held = json!({"metadata": {"name": "held", "labels": {"keep": "no"}, "finalizers": ["a.io/b"]}});
    client.create(CONFIGMAPS, &held).await;
    let dry = client.delete(&format!("{CONFIGMAPS}?labelSelector=keep%3Dno&dryRun=All")).await.json();
    assert_eq!(dry["items"].as_array().unwrap().len(), 601);
    let deleted = client.delete(&format!("{CONFIGMAPS}?labelSelector=keep%3Dno")).await.json();
    assert_eq!(deleted["kind"], "ConfigMapList");
    assert_eq!(deleted["items"].as_array().unwrap().len(), 601);
    let left = client.get(CONFIGMAPS).await.json();
    assert_eq!(left["items"].as_array().unwrap().len(), 101);
    assert!(
        client.get(&format!("{CONFIGMAPS}/held")).await.json()["metadata"]["deletionTimestamp"].is_string()
    );
}

#[tokio::test]
async fn options_come_in_the_body_too() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}).to_string();
    let answer = client.send(Method::DELETE, CONFIGMAPS, &[], body.as_bytes()).await;
    assert_eq!(answer.json()["items"].as_array().unwrap().len(), 1);
    assert_eq!(client.get(&format!("{CONFIGMAPS}/a")).await.code, 200);
}
