//! Informers and controllers of a server whose database lost part of its history.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use apiserver::auth::{ClusterAuthenticationInfo, Identity};
use model::{Attributes, Encoded, ObjectKey, Resource};
use process::Shutdown;
use process::reload::Current;
use serde_json::{Map, Value, json};
use store::{Precondition, Store, Write};
use tokio::task::JoinSet;

use crate::admission_policies::{BINDINGS, POLICIES, binding, policy};
use crate::client::{CONFIGMAPS, Client, version};
use crate::custom_resources::{CRDS, WIDGETS, crd, widget};
use crate::faulty_engine::Faulty;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const SYSTEM_MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FLOW_SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const ROLE_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// The key of an object in the collection at this path.
fn key(collection: &str, name: &str) -> ObjectKey {
    let parts: Vec<&str> = collection.split('/').collect();
    let group = if parts[1] == "api" { "" } else { parts[2] };
    let namespace = parts.iter().position(|part| *part == "namespaces").map_or("", |at| parts[at + 1]);
    ObjectKey::new(&Resource::new(group, parts[parts.len() - 1]), namespace, name)
}

/// The write that removes an object or one of its fields.
async fn removal(store: &Store, key: ObjectKey, field: Option<[&str; 2]>) -> Write {
    let head = store.get(&key, None).await.unwrap().unwrap_or_else(|| panic!("{key} is there"));
    let mut object: Map<String, Value> = serde_json::from_slice(&head.value).unwrap();
    let (expect, attributes) = (Precondition::default(), Attributes::default());
    let Some([part, field]) = field else {
        return Write::Delete { key, expect, attributes, body: Encoded::new(&object) };
    };
    object[part].as_object_mut().unwrap().remove(field).unwrap();
    Write::Update { key, expect, attributes, body: Encoded::new(&object) }
}

/// Waits until an object exists with this field.
async fn restored(client: &Client, collection: &str, name: &str, [part, field]: [&str; 2]) {
    loop {
        let all = client.get(collection).await.json();
        let items = all["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["metadata"]["name"] == name);
        if found.is_some_and(|found| !found[part][field].is_null()) {
            return;
        }
        let since = version(&all);
        client.watch(&format!("{collection}?watch=true&resourceVersion={since}")).await.next().await;
    }
}

/// The number of open store watches.
async fn watchers(client: &Client) -> u64 {
    let text = String::from_utf8(client.get("/metrics").await.bytes.to_vec()).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| line.split_once("store_watchers ")).unwrap().1.parse().unwrap()
}

/// Polls a request until one more store watch is open.
async fn until_watching(client: &Client, before: u64, mut request: impl Future + Unpin) {
    while watchers(client).await <= before {
        assert!(matches!(futures::poll!(&mut request), Poll::Pending), "the request waits");
        tokio::task::yield_now().await;
    }
    // The state is read once more after the watch is opened; these reads come after that one.
    for _ in 0..100 {
        assert!(matches!(futures::poll!(&mut request), Poll::Pending), "the request waits");
        client.get(CRDS).await;
    }
}

#[tokio::test]
async fn every_controller_recovers_from_a_lost_history() {
    let change = |builder: apiserver::Builder| {
        builder.address("192.0.2.1:6443".parse().unwrap()).host("test".to_owned())
    };
    let (client, engine) = Faulty::server(change).await;
    let key_pair = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertificateParams::new(["authority".to_owned()]).unwrap();
    let clients = x509::pem::encode(x509::pem::CERTIFICATE, authority.self_signed(&key_pair).unwrap().der());
    client
        .api
        .publish(Current::fixed(ClusterAuthenticationInfo { client_ca: clients, request_header: None }));
    let mut tasks = JoinSet::new();
    tasks.spawn(apiserver::check_policies(client.api.clone(), Shutdown::new()));
    client.create(POLICIES, &policy("p", ["", "v1", "configmaps"], "true")).await;
    client.create(CRDS, &crd()).await;
    let leases = client.get(LEASES).await.json();
    let lease = leases["items"][0]["metadata"]["name"].as_str().unwrap();
    for (collection, name, field) in [
        (SYSTEM_MAPS, "extension-apiserver-authentication", None),
        (SYSTEM_MAPS, "kube-apiserver-legacy-service-account-token-tracking", Some(["data", "since"])),
        (LEASES, lease, None),
        (ENDPOINTS, "kubernetes", None),
        (SLICES, "kubernetes", None),
        (API_SERVICES, "v1.example.io", None),
        (FLOW_SCHEMAS, "exempt", Some(["status", "conditions"])),
        (POLICIES, "p", Some(["status", "observedGeneration"])),
    ] {
        let (path, expected) = (format!("{collection}/{name}"), field.unwrap_or(["metadata", "name"]));
        restored(&client, collection, name, expected).await;
        // The controller watches the object: it handles an ordinary change.
        let answer = match field {
            None => client.delete(&path).await,
            Some([part @ "status", field]) => {
                client.merge(&format!("{path}/status"), &json!({part: {field: null}})).await
            }
            Some([part, field]) => client.merge(&path, &json!({part: {field: null}})).await,
        };
        assert_eq!(answer.code, 200, "{path}");
        restored(&client, collection, name, expected).await;
        let unseen = removal(&client.store, key(collection, name), field).await;
        engine.lose_history(vec![unseen]).await;
        restored(&client, collection, name, expected).await;
    }
}

#[tokio::test]
async fn decisions_use_the_relisted_objects() {
    let (client, engine) = Faulty::server(|builder| builder).await;
    let jane = client.as_caller(Identity::authenticated("jane", []));
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]);
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let grant = json!({"metadata": {"name": "jane"}, "subjects": subjects, "roleRef": role});
    client.create(ROLE_BINDINGS, &grant).await;
    client.create(POLICIES, &policy("p", ["", "v1", "configmaps"], "false")).await;
    client.create(BINDINGS, &binding("p")).await;
    client.create(CRDS, &crd()).await;
    let map = json!({"metadata": {"generateName": "a"}});
    let answers = async || {
        let [read, custom] = [jane.get(CONFIGMAPS).await.code, client.get(WIDGETS).await.code];
        [read, custom, client.post(CONFIGMAPS, &map).await.code]
    };
    assert_eq!(answers().await, [200, 200, 422]);
    let mut unseen = Vec::new();
    for (collection, name) in [(ROLE_BINDINGS, "jane"), (CRDS, "widgets.example.io"), (BINDINGS, "p")] {
        unseen.push(removal(&client.store, key(collection, name), None).await);
    }
    engine.lose_history(unseen).await;
    while answers().await != [403, 404, 201] {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.get("/readyz").await.code, 200);
}

#[tokio::test]
async fn the_index_mark_of_a_selectable_field_is_found() {
    let (client, engine) = Faulty::server(|builder| builder).await;
    client.create(CRDS, &crd()).await;
    client.create(WIDGETS, &widget("a", "red")).await;
    let mark = mark();
    let body = json!({"fields": ["spec.color"]});
    let create = Write::Create {
        key: mark.clone(),
        uid: model::Uid("mark".to_owned()),
        attributes: Attributes::default(),
        body: Encoded::new(body.as_object().unwrap()),
    };
    engine.lose_history(vec![create]).await;
    while client.store.get(&mark, None).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}

fn mark() -> ObjectKey {
    ObjectKey::new(&Resource::new("indexing", "customresourcedefinitions"), "", "widgets.example.io")
}

#[tokio::test]
async fn a_list_waiting_for_a_selectable_field_completes() {
    let (client, engine) = Faulty::server(|builder| builder).await;
    let mut plain = crd();
    plain["spec"]["versions"][0].as_object_mut().unwrap().remove("selectableFields");
    client.create(CRDS, &plain).await;
    // Stops the controller, so that the field stays without an index.
    assert!(client.api.inject_fault("the selectable field controller"));
    client.api.failed().await;
    let fields = json!([{"jsonPath": ".spec.color"}]);
    let change = json!([{"op": "add", "path": "/spec/versions/0/selectableFields", "value": fields}]);
    assert_eq!(client.json_patch(&format!("{CRDS}/widgets.example.io"), &change).await.code, 200);
    let before = watchers(&client).await;
    let path = format!("{WIDGETS}?fieldSelector=spec.color=red");
    let mut list = pin!(client.get(&path));
    until_watching(&client, before, list.as_mut()).await;
    let unseen = removal(&client.store, mark(), None).await;
    engine.lose_history(vec![unseen]).await;
    assert_eq!(list.await.code, 200);
}

#[tokio::test]
async fn a_crd_is_finalized_when_its_last_object_is_gone() {
    let (client, engine) = Faulty::server(|builder| builder).await;
    client.create(CRDS, &crd()).await;
    let mut held = widget("a", "red");
    held["metadata"]["finalizers"] = json!(["example.io/held"]);
    client.create(WIDGETS, &held).await;
    let before = watchers(&client).await;
    let path = format!("{CRDS}/widgets.example.io");
    assert_eq!(client.delete(&path).await.code, 200);
    until_watching(&client, before, std::future::pending::<()>()).await;
    let unseen = removal(&client.store, key(WIDGETS, "a"), None).await;
    engine.lose_history(vec![unseen]).await;
    while client.get(&path).await.code != 404 {
        tokio::task::yield_now().await;
    }
}
