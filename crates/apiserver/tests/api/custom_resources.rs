//! Custom resources: CRDs and their objects.

use std::collections::HashSet;
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, version};

pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const WIDGETS: &str = "/apis/example.io/v1/namespaces/default/widgets";

/// A CRD of widgets with one version.
pub fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}],
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "color": {"type": "string"},
                        "replicas": {"type": "integer", "default": 1},
                    }},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                }}},
            }],
            "conversion": {"strategy": "None"},
        },
    })
}

/// A widget of this name and color.
pub fn widget(name: &str, color: &str) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"color": color}})
}

/// A server with the CRD.
pub async fn with_widgets() -> Client {
    let client = Client::new().await;
    client.create(CRDS, &crd()).await;
    client
}

/// The names of the objects of a list.
pub fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_kind_is_served_when_the_create_of_its_crd_returns() {
    let client = Client::new().await;
    assert_eq!(client.get(WIDGETS).await.code, 404);
    let made = client.create(CRDS, &crd()).await;
    let conditions = made["status"]["conditions"].as_array().unwrap();
    let is_true = |kind: &str| conditions.iter().any(|c| c["type"] == kind && c["status"] == "True");
    assert!(is_true("NamesAccepted") && is_true("Established"), "{made}");
    let widget = client.create(WIDGETS, &widget("a", "red")).await;
    assert_eq!(widget["apiVersion"], "example.io/v1");
    assert_eq!(widget["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(widget["metadata"]["generation"], 1);
    let groups = client.get("/apis").await.json();
    assert_eq!(groups["groups"].as_array().unwrap().last().unwrap()["name"], "example.io");
    let resources = client.get("/apis/example.io/v1").await.json();
    let names: Vec<_> =
        resources["resources"].as_array().unwrap().iter().map(|r| r["name"].clone()).collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let list = client.get("/apis/example.io/v1/widgets").await.json();
    assert_eq!(list["kind"], "WidgetList");
    assert_eq!(list["items"][0]["kind"], "Widget");
}

/// A client that reads or watches a CRD can use it at once, even before the writer gets its response.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_kind_is_served_when_a_client_sees_its_crd() {
    const DEFINED: usize = 100;
    let client = Arc::new(Client::new().await);
    let mut watch = client.watch(&format!("{CRDS}?watch=true")).await;
    let writer = client.clone();
    let mut writing = JoinSet::new();
    writing.spawn(async move {
        for number in 0..DEFINED {
            let mut crd = crd();
            let group = format!("of{number}.example.io");
            crd["metadata"]["name"] = format!("widgets.{group}").into();
            crd["spec"]["group"] = group.into();
            writer.create(CRDS, &crd).await;
        }
    });
    let (mut late, mut heard) = (Vec::new(), HashSet::new());
    while heard.len() < DEFINED {
        let group = watch.next().await.unwrap()["object"]["spec"]["group"].as_str().unwrap().to_owned();
        if client.get(&format!("/apis/{group}/v1")).await.code != 200 {
            late.push(group.clone());
        }
        heard.insert(group);
    }
    assert_eq!(late, Vec::<String>::new(), "heard before they were served");
    writing.join_all().await;
}

#[tokio::test]
async fn unknown_fields_are_pruned_with_a_warning() {
    let client = with_widgets().await;
    let mut odd = widget("a", "red");
    odd["spec"]["size"] = 3.into();
    odd["metadata"]["odd"] = 3.into();
    let made = client.post(WIDGETS, &odd).await;
    assert_eq!(
        made.warnings(),
        ["299 - \"unknown field \\\"metadata.odd\\\"\"", "299 - \"unknown field \\\"spec.size\\\"\""]
    );
    assert_eq!(made.json()["spec"], json!({"color": "red", "replicas": 1}));
    odd["metadata"]["name"] = "b".into();
    let refused = client.post(&format!("{WIDGETS}?fieldValidation=Strict"), &odd).await.failure();
    assert_eq!(refused.0, 400);
    assert!(refused.2.contains("strict decoding error: unknown field \"metadata.odd\", unknown field"));
}

#[tokio::test]
async fn the_status_and_the_rest_are_written_apart() {
    let client = with_widgets().await;
    let mut first = widget("a", "red");
    first["status"] = json!({"replicas": 7});
    let made = client.create(WIDGETS, &first).await;
    assert_eq!(made.get("status"), None);
    let path = format!("{WIDGETS}/a");
    let patch =
        json!({"spec": {"color": "blue"}, "status": {"replicas": 2}, "metadata": {"labels": {"a": "b"}}});
    let status = client.merge(&format!("{path}/status"), &patch).await.json();
    assert_eq!((&status["spec"]["color"], &status["status"]["replicas"]), (&json!("red"), &json!(2)));
    assert_eq!(status["metadata"].get("labels"), None);
    assert_eq!(status["metadata"]["generation"], 1);
    let rest =
        client.merge(&path, &json!({"spec": {"color": "blue"}, "status": {"replicas": 3}})).await.json();
    assert_eq!((&rest["spec"]["color"], &rest["status"]["replicas"]), (&json!("blue"), &json!(2)));
    assert_eq!(rest["metadata"]["generation"], 2);
    let scale = client.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 5}})).await.json();
    assert_eq!(
        (&scale["kind"], &scale["spec"]["replicas"], &scale["status"]["replicas"]),
        (&json!("Scale"), &json!(5), &json!(2))
    );
    assert_eq!(client.get(&path).await.json()["spec"], json!({"color": "blue", "replicas": 5}));
}

#[tokio::test]
async fn objects_are_selected_by_their_fields_and_shown_in_columns() {
    let client = with_widgets().await;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        client.create(WIDGETS, &widget(name, color)).await;
    }
    let red = client.get(&format!("{WIDGETS}?fieldSelector=spec.color=red")).await.json();
    assert_eq!(names(&red), ["a", "c"]);
    let refused = client.get(&format!("{WIDGETS}?fieldSelector=spec.size=1")).await.failure();
    assert_eq!(refused.2, "field label not supported: spec.size");
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = client.send(Method::GET, WIDGETS, &accept, b"").await.json();
    assert_eq!(table["columnDefinitions"][1]["name"], "Color");
    assert_eq!(table["rows"][1]["cells"], json!(["b", "blue"]));
}

#[tokio::test]
async fn a_changed_crd_applies_to_stored_objects_and_running_watches() {
    let client = with_widgets().await;
    client.create(WIDGETS, &widget("a", "red")).await;
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true")).await;
    watch.expect(&[("ADDED", "a")]).await;
    let path = format!("{CRDS}/widgets.example.io");
    let mut changed = client.get(&path).await.json();
    let fields =
        &mut changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    *fields = json!({"size": {"type": "string", "default": "small"}, "replicas": {"type": "integer"}});
    changed["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.size"}]);
    let answer = client.put(&path, &changed).await;
    assert_eq!(answer.code, 200, "{}", answer.json());
    assert_eq!(watch.next().await, None);
    let shown = client.get(&format!("{WIDGETS}/a")).await.json();
    assert_eq!(shown["spec"], json!({"replicas": 1, "size": "small"}));
    let list = client.get(WIDGETS).await.json();
    assert_eq!(list["items"][0]["spec"], shown["spec"]);
    // Objects are rewritten to index the new field; later events come from other writers only.
    let small = client.get(&format!("{WIDGETS}?fieldSelector=spec.size=small")).await.json();
    assert_eq!(names(&small), ["a"]);
    let mut again = client.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(again.next().await.unwrap()["object"]["spec"], shown["spec"]);
    client.merge(&format!("{WIDGETS}/a"), &json!({"spec": {"replicas": 2}})).await;
    assert_eq!(again.next().await.unwrap()["object"]["spec"], json!({"replicas": 2, "size": "small"}));
}

#[tokio::test]
async fn a_deleted_event_has_the_shape_of_the_current_crd() {
    let client = with_widgets().await;
    client.create(WIDGETS, &widget("a", "red")).await;
    let path = format!("{CRDS}/widgets.example.io");
    let mut changed = client.get(&path).await.json();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] =
        json!({"type": "string", "default": "small"});
    assert_eq!(client.put(&path, &changed).await.code, 200);
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true")).await;
    watch.expect(&[("ADDED", "a")]).await;
    client.delete(&format!("{WIDGETS}/a")).await;
    let end = watch.next().await.unwrap();
    assert_eq!(end["type"], "DELETED");
    assert_eq!(end["object"]["spec"], json!({"color": "red", "replicas": 1, "size": "small"}));
}

#[tokio::test]
async fn a_crd_is_removed_when_its_objects_are_gone() {
    let client = with_widgets().await;
    let mut held = widget("a", "red");
    held["metadata"]["finalizers"] = json!(["example.io/hold"]);
    client.create(WIDGETS, &held).await;
    client.create(WIDGETS, &widget("b", "red")).await;
    let path = format!("{CRDS}/widgets.example.io");
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true")).await;
    watch.expect(&[("ADDED", "a"), ("ADDED", "b")]).await;
    let mut crds = client.watch(&format!("{CRDS}?watch=true")).await;
    crds.expect(&[("ADDED", "widgets.example.io")]).await;
    let ending = client.delete(&path).await.json();
    assert_eq!(ending["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(ending["status"]["conditions"][2]["reason"], "InstanceDeletionPending");
    let refused = client.post(WIDGETS, &widget("c", "red")).await.failure();
    assert_eq!(refused.0, 403);
    assert!(refused.2.ends_with("create not allowed while custom resource definition is terminating"));
    let mut seen = vec![watch.next_name().await, watch.next_name().await];
    seen.sort();
    assert_eq!(
        seen,
        [("DELETED".into(), "b".into()), ("MODIFIED".into(), "a".into())] as [(String, String); 2]
    );
    assert_eq!(client.get(&path).await.code, 200);
    client.merge(&format!("{WIDGETS}/a"), &json!({"metadata": {"finalizers": null}})).await;
    watch.expect(&[("DELETED", "a")]).await;
    let steps = [
        ("MODIFIED", "widgets.example.io"),
        ("MODIFIED", "widgets.example.io"),
        ("DELETED", "widgets.example.io"),
    ];
    crds.expect(&steps).await;
    assert_eq!(watch.next().await, None);
    assert_eq!(client.get(&path).await.code, 404);
    assert_eq!(client.get(WIDGETS).await.code, 404);
    client.create(CRDS, &crd()).await;
    assert_eq!(names(&client.get(WIDGETS).await.json()), Vec::<&str>::new());
}

#[tokio::test]
async fn a_slow_watch_gets_the_last_events_before_its_crd_is_removed() {
    let client = with_widgets().await;
    client.create(WIDGETS, &widget("a", "red")).await;
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true")).await;
    watch.expect(&[("ADDED", "a")]).await;
    let mut crds = client.watch(&format!("{CRDS}?watch=true")).await;
    client.delete(&format!("{CRDS}/widgets.example.io")).await;
    while crds.next_name().await.0 != "DELETED" {}
    while client.get(WIDGETS).await.code != 404 {}
    watch.expect(&[("DELETED", "a")]).await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn admission_is_skipped_for_objects_deleted_with_their_crd() {
    let client = with_widgets().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({
        "apiGroups": ["example.io"], "apiVersions": ["*"], "resources": ["*"], "operations": ["DELETE"],
    });
    let policy = json!({
        "metadata": {"name": "keep"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]},
    });
    client.create(&format!("{group}/validatingadmissionpolicies"), &policy).await;
    let binding = json!({
        "metadata": {"name": "keep"}, "spec": {"policyName": "keep", "validationActions": ["Deny"]},
    });
    client.create(&format!("{group}/validatingadmissionpolicybindings"), &binding).await;
    client.create(WIDGETS, &widget("a", "red")).await;
    assert_eq!(client.delete(&format!("{WIDGETS}/a")).await.code, 422);
    let mut crds = client.watch(&format!("{CRDS}?watch=true")).await;
    client.delete(&format!("{CRDS}/widgets.example.io")).await;
    while crds.next_name().await.0 != "DELETED" {}
}

#[tokio::test]
async fn a_crd_reports_undeletable_objects_and_is_removed_once_they_are_gone() {
    let client = Client::new().await;
    let mut made = crd();
    let mut second = made["spec"]["versions"][0].clone();
    (second["name"], second["storage"]) = (json!("v2"), json!(false));
    made["spec"]["versions"].as_array_mut().unwrap().push(second);
    client.create(CRDS, &made).await;
    client.create(WIDGETS, &widget("a", "red")).await;
    let path = format!("{CRDS}/widgets.example.io");
    let mut changed = client.get(&path).await.json();
    for (version, is_stored) in [(0, false), (1, true)] {
        changed["spec"]["versions"][version]["storage"] = json!(is_stored);
    }
    changed["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://127.0.0.1:1/nobody"}, "conversionReviewVersions": ["v1"],
    }});
    let answer = client.put(&path, &changed).await;
    assert_eq!(answer.code, 200, "{}", answer.json());
    let mut crds = client.watch(&format!("{CRDS}?watch=true")).await;
    client.delete(&path).await;
    let terminating = loop {
        let crd = crds.next().await.unwrap();
        let conditions = crd["object"]["status"]["conditions"].as_array().unwrap().clone();
        let found = conditions.into_iter().find(|condition| condition["type"] == "Terminating");
        if let Some(failed) = found.filter(|condition| condition["reason"] == "InstanceDeletionFailed") {
            break failed;
        }
    };
    let message = terminating["message"].as_str().unwrap();
    assert!(message.starts_with("could not issue all deletes: conversion webhook for "), "{message}");
    client.merge(&path, &json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}})).await;
    while crds.next_name().await.0 != "DELETED" {}
}

#[tokio::test]
async fn crd_finalization_continues_after_a_restart() {
    let client = with_widgets().await;
    let mut held = widget("a", "red");
    held["metadata"]["finalizers"] = json!(["example.io/hold"]);
    client.create(WIDGETS, &held).await;
    let path = format!("{CRDS}/widgets.example.io");
    assert_eq!(client.delete(&path).await.code, 200);
    let again = client.restarted().await;
    drop(client);
    let mut crds = again.watch(&format!("{CRDS}?watch=true")).await;
    crds.expect(&[("ADDED", "widgets.example.io")]).await;
    let free = json!({"metadata": {"finalizers": null}});
    assert_eq!(again.merge(&format!("{WIDGETS}/a"), &free).await.code, 200);
    crds.expect(&[("DELETED", "widgets.example.io")]).await;
    assert_eq!(again.get(WIDGETS).await.code, 404);
}

#[tokio::test]
async fn objects_are_found_by_fields_that_became_selectable_later() {
    let client = Client::new().await;
    let mut plain = crd();
    let version = plain["spec"]["versions"][0].as_object_mut().unwrap();
    let fields = version.remove("selectableFields").unwrap();
    client.create(CRDS, &plain).await;
    for (name, color) in [("a", "red"), ("b", "blue")] {
        client.create(WIDGETS, &widget(name, color)).await;
    }
    let change = json!([{"op": "add", "path": "/spec/versions/0/selectableFields", "value": fields}]);
    assert_eq!(client.json_patch(&format!("{CRDS}/widgets.example.io"), &change).await.code, 200);
    let blue = client.get(&format!("{WIDGETS}?fieldSelector=spec.color=blue")).await.json();
    assert_eq!(names(&blue), ["b"]);
}

#[tokio::test]
async fn conflicting_crd_names_are_accepted_when_they_become_free() {
    let client = with_widgets().await;
    let mut second = crd();
    second["metadata"]["name"] = "gadgets.example.io".into();
    second["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"});
    let made = client.create(CRDS, &second).await;
    assert_eq!(made["status"]["conditions"][0]["reason"], "KindConflict");
    assert_eq!(made["status"]["conditions"][1]["status"], "False");
    let path = "/apis/example.io/v1/namespaces/default/gadgets";
    assert_eq!(client.get(path).await.code, 404);
    let mut watch = client.watch(&format!("{CRDS}?watch=true&resourceVersion={}", version(&made))).await;
    client.delete(&format!("{CRDS}/widgets.example.io")).await;
    loop {
        let event = watch.next().await.unwrap();
        let is_established = event["object"]["status"]["conditions"][1]["status"] == "True";
        if event["object"]["metadata"]["name"] == "gadgets.example.io" && is_established {
            break;
        }
    }
    assert_eq!(client.get(path).await.code, 200);
}

#[tokio::test]
async fn a_restarted_server_serves_stored_crds() {
    let client = with_widgets().await;
    client.create(WIDGETS, &widget("a", "red")).await;
    let again = client.restarted().await;
    assert_eq!(again.get(&format!("{WIDGETS}/a")).await.json()["spec"]["color"], "red");
    // CRDs of one server are served by the other.
    let mut second = crd();
    second["metadata"]["name"] = "gadgets.example.io".into();
    second["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"});
    let made = again.create(CRDS, &second).await;
    let mut watch = client.watch(&format!("{CRDS}?watch=true&resourceVersion={}", version(&made) - 1)).await;
    watch.expect(&[("ADDED", "gadgets.example.io")]).await;
    let mut gadget = widget("g", "red");
    gadget["kind"] = "Gadget".into();
    again.create("/apis/example.io/v1/namespaces/default/gadgets", &gadget).await;
    // A write whose CRD changed on another server uses the new one.
    let path = format!("{CRDS}/widgets.example.io");
    let fields = json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema":
        {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    assert_eq!(again.merge(&path, &fields).await.code, 200);
    let mut odd = widget("b", "red");
    odd["size"] = 4.into();
    assert_eq!(client.create(WIDGETS, &odd).await["size"], 4);
}
