//! Conversion webhooks of CRDs, with an HTTPS server of the test.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::client::Client;
use crate::custom_resources::CRDS;
use crate::webhook_server::Webhook;

/// `v1` has one text for the host and port of `v2`.
fn converted(review: &Value) -> Value {
    let to = review["request"]["desiredAPIVersion"].as_str().unwrap();
    let objects = review["request"]["objects"].as_array().unwrap().iter().map(|object| {
        let mut object = object.clone();
        let spec = object["spec"].clone();
        object["spec"] = if to.ends_with("v2") {
            let (host, port) = spec["address"].as_str().unwrap().split_once(':').unwrap();
            json!({"host": host, "port": port})
        } else {
            json!({"address": format!("{}:{}", spec["host"].as_str().unwrap(), spec["port"].as_str().unwrap())})
        };
        object["apiVersion"] = to.into();
        object
    });
    let response = json!({
        "uid": review["request"]["uid"], "result": {"status": "Success"},
        "convertedObjects": objects.collect::<Vec<_>>(),
    });
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response})
}

fn crd(config: Value) -> Value {
    let version = |name: &str, storage: bool, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let text = || json!({"type": "string"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ends.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": {"plural": "ends", "singular": "end", "kind": "End", "listKind": "EndList"},
            "versions": [
                version("v1", true, json!({"address": text()})),
                version("v2", false, json!({"host": text(), "port": text()})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": config, "conversionReviewVersions": ["v1"]}},
        },
    })
}

fn end(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.io/{version}"), "kind": "End", "metadata": {"name": name}, "spec": spec})
}

const V1: &str = "/apis/example.io/v1/namespaces/default/ends";
const V2: &str = "/apis/example.io/v2/namespaces/default/ends";

#[tokio::test]
async fn a_webhook_converts_reads_and_writes_in_another_version() {
    let webhook = Webhook::start(|_, review| converted(review)).await;
    let client = Client::new().await;
    client.create(CRDS, &crd(webhook.config("/convert"))).await;
    let first = client.create(V2, &end("v2", "a", json!({"host": "h", "port": "1"}))).await;
    assert_eq!(
        (&first["apiVersion"], &first["spec"]),
        (&json!("example.io/v2"), &json!({"host": "h", "port": "1"}))
    );
    assert_eq!(client.get(&format!("{V1}/a")).await.json()["spec"], json!({"address": "h:1"}));
    for name in ["b", "c"] {
        client.create(V1, &end("v1", name, json!({"address": "x:2"}))).await;
    }
    webhook.take();
    let list = client.get(V2).await.json();
    let hosts: Vec<_> = list["items"].as_array().unwrap().iter().map(|i| i["spec"]["host"].clone()).collect();
    assert_eq!(hosts, ["h", "x", "x"]);
    let sizes =
        webhook.take().into_iter().map(|(_, review)| review["request"]["objects"].as_array().unwrap().len());
    assert_eq!(sizes.collect::<Vec<_>>(), [3]);
    let mut watch = client.watch(&format!("{V2}?watch=true&resourceVersion=0")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["host"], "h");
    watch.expect(&[("ADDED", "b"), ("ADDED", "c")]).await;
    let patched = client.merge(&format!("{V2}/a"), &json!({"spec": {"port": "9"}})).await.json();
    assert_eq!(patched["spec"], json!({"host": "h", "port": "9"}));
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["port"], "9");
    assert_eq!(client.get(&format!("{V1}/a")).await.json()["spec"], json!({"address": "h:9"}));
    assert_eq!(webhook.connections.load(Ordering::Relaxed), 1);
    // Another storage version: older objects are converted from the version that they are stored in.
    let path = format!("{CRDS}/ends.example.io");
    let change = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    assert_eq!(client.json_patch(&path, &change).await.code, 200);
    client.create(V2, &end("v2", "d", json!({"host": "d", "port": "4"}))).await;
    for (name, address) in [("a", "h:9"), ("d", "d:4")] {
        assert_eq!(client.get(&format!("{V1}/{name}")).await.json()["spec"], json!({"address": address}));
        let host = address.split(':').next().unwrap();
        assert_eq!(client.get(&format!("{V2}/{name}")).await.json()["spec"]["host"], host);
    }
}

#[tokio::test]
async fn a_failing_conversion_webhook_is_named_in_the_error() {
    let webhook = Webhook::start(|_, review| converted(review)).await;
    let client = Client::new().await;
    client.create(CRDS, &crd(webhook.config("/convert"))).await;
    client.create(V1, &end("v1", "a", json!({"address": "h:1"}))).await;
    let message = || async { client.get(&format!("{V2}/a")).await.failure() };
    webhook.answer_with(|_, review| {
        let mut answer = converted(review);
        answer["response"]["result"] = json!({"status": "Failure", "message": "not today"});
        answer
    });
    let (code, _, text) = message().await;
    assert_eq!(
        (code, text.as_str()),
        (500, "conversion webhook for example.io/v1, Kind=End failed: not today")
    );
    webhook.answer_with(|_, review| {
        let mut answer = converted(review);
        answer["response"]["convertedObjects"][0]["metadata"]["name"] = "b".into();
        answer
    });
    assert_eq!(
        message().await.2,
        "conversion webhook for example.io/v1, Kind=End returned invalid object at index 0: must have the same name: a != b"
    );
    webhook.answer_with(|_, _| json!("nonsense"));
    assert_eq!(message().await.0, 500);
    let path = format!("{CRDS}/ends.example.io");
    // No server listens at port 1.
    let change = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"url": "https://127.0.0.1:1/convert"}}}}});
    assert_eq!(client.merge(&path, &change).await.code, 200);
    let text = message().await.2;
    assert!(text.starts_with("conversion webhook for example.io/v1, Kind=End failed: Post \"https://127.0.0.1:1/convert?timeout=30s\": dial tcp"), "{text}");
    // The storage version needs no webhook.
    assert_eq!(client.get(&format!("{V1}/a")).await.code, 200);
}
