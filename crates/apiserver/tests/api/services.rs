//! Services: allocation of cluster IPs and node ports.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use apiserver::auth::Identity;
use apiserver::{ApiServer, ApiService};
use futures::future::join_all;
use http::Method;
use process::Shutdown;
use serde_json::{Value, json};

use crate::client::Client;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn service(name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    if spec.get("ports").is_none() {
        spec["ports"] = json!([{"port": 80}]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn make(client: &Client, name: &str, spec: &Value) -> Value {
    let answer = client.post(SERVICES, &service(name, spec)).await;
    assert_eq!(answer.code, 201, "{}", answer.json());
    answer.json()
}

async fn names(client: &Client, path: &str) -> BTreeSet<String> {
    let list = client.get(path).await.json();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_kubernetes_service_exists() {
    let address: SocketAddr = "192.0.2.7:6443".parse().unwrap();
    let client = Client::with(|builder| builder.address(address)).await;
    let service = client.get(&format!("{SERVICES}/kubernetes")).await.json();
    assert_eq!(service["metadata"]["labels"], json!({"component": "apiserver", "provider": "kubernetes"}));
    assert_eq!(
        service["spec"],
        json!({
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "type": "ClusterIP",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        })
    );
    let ports = json!([{"name": "https", "port": 6443, "protocol": "TCP"}]);
    let endpoints = client.get("/api/v1/namespaces/default/endpoints/kubernetes").await.json();
    assert_eq!(endpoints["subsets"], json!([{"addresses": [{"ip": "192.0.2.7"}], "ports": ports}]));
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = client.get(&format!("{slices}/kubernetes")).await.json();
    assert_eq!(slice["endpoints"], json!([{"addresses": ["192.0.2.7"], "conditions": {"ready": true}}]));
    let range = client.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await.json();
    assert_eq!(range["spec"], json!({"cidrs": ["10.0.0.0/24"]}));
    assert_eq!(range["status"]["conditions"][0]["status"], "True");
    let shown = client.get(&format!("{ADDRESSES}/10.0.0.1")).await.json();
    let parent = json!({"resource": "services", "namespace": "default", "name": "kubernetes"});
    assert_eq!(shown["spec"], json!({"parentRef": parent}));
    assert_eq!(shown["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"], "IPv4");
}

#[tokio::test]
async fn a_second_start_moves_the_endpoints_and_leaves_the_rest() {
    let first: SocketAddr = "192.0.2.7:6443".parse().unwrap();
    let stop = Shutdown::new();
    let client = Client::with(|builder| builder.address(first).shutdown(stop.clone())).await;
    let before = client.get(&format!("{SERVICES}/kubernetes")).await.json();
    // The first server must stop: the store is not shared.
    stop.request();
    let moved = "192.0.2.8:6443".parse().unwrap();
    ApiServer::builder(client.store.clone()).address(moved).build().await.unwrap().ready().await;
    assert_eq!(client.get(&format!("{SERVICES}/kubernetes")).await.json(), before);
    let endpoints = client.get("/api/v1/namespaces/default/endpoints/kubernetes").await.json();
    assert_eq!(endpoints["subsets"][0]["addresses"], json!([{"ip": "192.0.2.8"}]));
}

#[tokio::test]
async fn deleting_a_service_releases_its_address_and_ports() {
    let client = Client::new().await;
    let made = make(&client, "a", &json!({"type": "NodePort"})).await;
    let (address, port) = (&made["spec"]["clusterIP"], &made["spec"]["ports"][0]["nodePort"]);
    let same = json!({"type": "NodePort", "clusterIP": address, "ports": [{"port": 1, "nodePort": port}]});
    let (code, _, message) = client.post(SERVICES, &service("b", &same)).await.failure();
    let text = address.as_str().unwrap();
    assert_eq!(code, 422);
    assert!(message.ends_with(&format!("failed to allocate IP {text}: provided IP is already allocated")));
    let endpoints = "/api/v1/namespaces/default/endpoints";
    assert_eq!(client.post(endpoints, &json!({"metadata": {"name": "a"}})).await.code, 201);
    assert!(names(&client, ADDRESSES).await.contains(text));

    assert_eq!(client.delete(&format!("{SERVICES}/a")).await.code, 200);
    assert!(!names(&client, ADDRESSES).await.contains(text));
    assert!(!names(&client, endpoints).await.contains("a"));
    let again = make(&client, "b", &same).await;
    assert_eq!((&again["spec"]["clusterIP"], &again["spec"]["ports"][0]["nodePort"]), (address, port));
}

#[tokio::test]
async fn a_change_of_type_gives_ports_and_address_back() {
    let client = Client::new().await;
    let spec =
        json!({"type": "NodePort", "clusterIP": "10.0.0.9", "ports": [{"port": 80, "nodePort": 30001}]});
    make(&client, "a", &spec).await;
    let other = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}]});
    let (_, _, message) = client.post(SERVICES, &service("b", &other)).await.failure();
    assert!(message.ends_with("Invalid value: 30001: provided port is already allocated"), "{message}");

    let cluster = client.put(&format!("{SERVICES}/a"), &service("a", &json!({"type": "ClusterIP"}))).await;
    assert_eq!((cluster.code, &cluster.json()["spec"]["clusterIP"]), (200, &json!("10.0.0.9")));
    make(&client, "b", &other).await;
    let external = json!({"type": "ExternalName", "externalName": "example.com"});
    let external = client.put(&format!("{SERVICES}/a"), &service("a", &external)).await.json();
    assert_eq!(external["spec"].get("clusterIP"), None);
    make(&client, "c", &json!({"clusterIP": "10.0.0.9"})).await;
    // Changing back allocates another address and a free port.
    let back = client.put(&format!("{SERVICES}/a"), &service("a", &json!({"type": "NodePort"}))).await.json();
    assert_ne!(back["spec"]["clusterIP"], "10.0.0.9");
    assert!(back["spec"]["ports"][0]["nodePort"].as_i64().unwrap() > 30_001);
}

#[tokio::test]
async fn a_service_that_finalizers_hold_keeps_its_address_until_it_ends() {
    let client = Client::new().await;
    let mut held = service("a", &json!({"clusterIP": "10.0.0.9"}));
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    assert_eq!(client.post(SERVICES, &held).await.code, 201);
    assert_eq!(client.delete(&format!("{SERVICES}/a")).await.code, 200);
    let wanted = json!({"clusterIP": "10.0.0.9"});
    assert_eq!(client.post(SERVICES, &service("b", &wanted)).await.code, 422);
    let path = format!("{SERVICES}/a");
    let patch = br#"{"metadata":{"finalizers":null}}"#;
    let media = [("content-type", "application/merge-patch+json")];
    assert_eq!(client.send(Method::PATCH, &path, &media, patch).await.code, 200);
    make(&client, "b", &wanted).await;
}

#[tokio::test]
async fn writing_ipaddress_objects_does_not_change_allocations() {
    let client = Client::new().await;
    make(&client, "a", &json!({"clusterIP": "10.0.0.9"})).await;
    assert_eq!(client.delete(&format!("{ADDRESSES}/10.0.0.9")).await.code, 200);
    let wanted = json!({"clusterIP": "10.0.0.9"});
    assert_eq!(client.post(SERVICES, &service("b", &wanted)).await.code, 422);
    assert_eq!(client.delete(&format!("{SERVICES}/a")).await.code, 200);
    make(&client, "b", &wanted).await;

    let parent = json!({"resource": "gateways", "group": "example.com", "name": "x"});
    let own = json!({"metadata": {"name": "10.0.0.10"}, "spec": {"parentRef": parent}});
    assert_eq!(client.post(ADDRESSES, &own).await.code, 201);
    assert_eq!(client.post(SERVICES, &service("c", &json!({"clusterIP": "10.0.0.10"}))).await.code, 422);
}

#[tokio::test]
async fn a_dry_run_takes_nothing() {
    let client = Client::new().await;
    let dry = format!("{SERVICES}?dryRun=All");
    let before = names(&client, ADDRESSES).await;
    let answer = client.post(&dry, &service("a", &json!({"clusterIP": "10.0.0.9"}))).await;
    assert_eq!((answer.code, &answer.json()["spec"]["clusterIP"]), (201, &json!("10.0.0.9")));
    assert_eq!(names(&client, ADDRESSES).await, before);
    make(&client, "b", &json!({"clusterIP": "10.0.0.9"})).await;
    assert_eq!(client.post(&dry, &service("a", &json!({"clusterIP": "10.0.0.9"}))).await.code, 422);
}

#[tokio::test]
async fn two_servers_allocate_each_address_once_until_none_is_left() {
    const FREE: usize = 253;
    let first = Client::new().await;
    let api = ApiServer::builder(first.store.clone()).build().await.unwrap();
    api.ready().await;
    let second = first
        .of(ApiService::new(api.clone(), Identity::authenticated("admin", ["system:masters".to_owned()])));
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    let (first, second, spec) = (&first, &second, &spec);
    let all = join_all((0..FREE).map(|number| async move {
        let client = if number % 2 == 0 { first } else { second };
        make(client, &format!("s{number}"), spec).await
    }));
    let all = all.await;
    let addresses: BTreeSet<&str> =
        all.iter().map(|service| service["spec"]["clusterIP"].as_str().unwrap()).collect();
    assert_eq!(addresses.len(), FREE);
    let ports: BTreeSet<i64> = all
        .iter()
        .flat_map(|service| {
            [&service["spec"]["ports"][0]["nodePort"], &service["spec"]["healthCheckNodePort"]]
        })
        .map(|port| port.as_i64().unwrap())
        .collect();
    assert_eq!(ports.len(), 2 * FREE);
    assert_eq!(names(first, ADDRESSES).await.len(), FREE + 1);

    let (code, _, message) = first.post(SERVICES, &service("full", &json!({}))).await.failure();
    let full = "Internal error occurred: failed to allocate a serviceIP: range is full";
    assert_eq!((code, message.as_str()), (500, full));
    assert_eq!(first.delete(&format!("{SERVICES}/s7")).await.code, 200);
    let made = make(second, "last", &json!({})).await;
    assert_eq!(made["spec"]["clusterIP"], all[7]["spec"]["clusterIP"]);
}

#[tokio::test]
async fn services_without_an_address_take_none() {
    let client = Client::new().await;
    let before = names(&client, ADDRESSES).await;
    make(&client, "headless", &json!({"clusterIP": "None"})).await;
    make(&client, "external", &json!({"type": "ExternalName", "externalName": "example.com"})).await;
    assert_eq!(names(&client, ADDRESSES).await, before);
    let made = client.put(&format!("{SERVICES}/new"), &service("new", &json!({}))).await;
    assert_eq!(made.code, 201);
    assert_eq!(names(&client, ADDRESSES).await.len(), before.len() + 1);
    let list = client.get(&format!("{SERVICES}?fieldSelector=spec.clusterIP%3DNone")).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn endpoints_requests_get_a_deprecation_warning() {
    let client = Client::new().await;
    let old = "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    let endpoints = "/api/v1/namespaces/default/endpoints";
    assert_eq!(client.get(endpoints).await.warnings(), [old]);
    let subsets = json!([{"addresses": [{"ip": "010.0.0.1"}]}]);
    let made = client.post(endpoints, &json!({"metadata": {"name": "a"}, "subsets": subsets})).await;
    assert_eq!((made.code, made.warnings().len(), &*made.warnings()[0]), (201, 2, old));
}
