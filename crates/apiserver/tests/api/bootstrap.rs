//! The bootstrap objects of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apiserver::ApiServer;
use apiserver::audit::{Audit, Log, Rotation};
use apiserver::auth::{ClusterAuthenticationInfo, ProxyHeaders, RequestHeaderInfo};
use kinds::audit::Policy;
use process::reload::{Current, Updater};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use store::{Metrics, Options, Sqlite, Store};

use crate::client::Client;

/// The ConfigMap for extension API servers.
const AUTHENTICATION_CONFIGMAP: &str =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

const FLOW_SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

#[tokio::test]
async fn a_fresh_server_has_the_default_objects() {
    let client = Client::new().await;
    for (path, count) in [
        ("/api/v1/namespaces", 4),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", 2),
        ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", 8),
        (FLOW_SCHEMAS, 11),
        ("/apis/apiregistration.k8s.io/v1/apiservices", 21),
    ] {
        let list = client.get(path).await.json();
        assert_eq!(list["items"].as_array().map(Vec::len), Some(count), "{path}");
    }
}

/// A kill before the first answer leaves all of them or none, and the start waits for one fsync.
#[tokio::test]
async fn the_first_objects_are_one_commit_and_a_restart_only_takes_over_the_lease() {
    let mut metrics = Registry::default();
    let engine = Arc::new(Sqlite::in_memory().unwrap());
    let store = Store::open(engine, Options::default(), &Metrics::new(&mut metrics)).await.unwrap();
    let commits = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &metrics).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("store_commit_seconds_count "));
        line.unwrap().parse::<u32>().unwrap()
    };
    let start = || ApiServer::builder(store.clone()).address("192.0.2.7:6443".parse().unwrap()).build();
    let api = start().await.unwrap();
    assert_eq!(commits(), 1);
    api.ready().await;
    let all = commits();
    drop(api);
    let again = start().await.unwrap();
    assert_eq!(commits(), all);
    again.ready().await;
    assert_eq!(commits(), all + 1);
}

/// Requests of the pipeline are in the audit log.
#[tokio::test]
async fn every_object_of_a_fresh_server_came_through_the_pipeline() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let log = Arc::new(Log::open(file.path(), Rotation::default()).unwrap());
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}";
    let audit = Audit::new(Policy::read(policy.as_bytes()).unwrap(), log.clone());
    let change = |builder: apiserver::Builder| {
        builder.audit(audit).address("192.0.2.1:6443".parse().unwrap()).host("test".to_owned())
    };
    let client = Client::with(change).await;
    let mut objects = BTreeMap::new();
    for of in client.api.registry().types().filter(|of| of.verbs.contains(apiserver::Verb::List)) {
        let list = client.get(&format!("{}/{}", of.base_path(), of.plural)).await.json();
        let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
        // Objects that are computed for the response have no uid.
        let uids = items.iter().filter_map(|item| item["metadata"]["uid"].as_str());
        objects.extend(uids.map(|uid| (uid.to_owned(), of.plural.clone())));
    }
    assert!(objects.len() > 100, "roles, namespaces and more are there: {}", objects.len());
    log.flush();
    let text = std::fs::read_to_string(file.path()).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let created = events.filter(|event| event["verb"] == "create" && event["responseStatus"]["code"] == 201);
    let created: BTreeSet<String> = created
        .filter_map(|event| Some(event["responseObject"]["metadata"]["uid"].as_str()?.to_owned()))
        .collect();
    // The request for the Service `kubernetes` writes its IPAddress.
    objects.retain(|uid, plural| !created.contains(uid) && plural != "ipaddresses");
    assert!(objects.is_empty(), "{objects:?}");
}

#[tokio::test]
async fn a_restart_creates_only_missing_objects() {
    let client = Client::new().await;
    let restart = || async {
        let before = client.store.clock().await.unwrap().current;
        ApiServer::builder(client.store.clone()).build().await.unwrap().ready().await;
        client.store.clock().await.unwrap().current.0 - before.0
    };
    assert_eq!(restart().await, 0);
    let apps = "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps";
    assert_eq!(client.delete(apps).await.code, 200);
    assert_eq!(restart().await, 1);
    assert_eq!(client.get(apps).await.code, 200);
}

#[tokio::test]
async fn the_authentication_configmap_is_restored_and_merged_between_servers() {
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertificateParams::new(["authority".to_owned()]).unwrap();
    let authority = x509::pem::encode(x509::pem::CERTIFICATE, authority.self_signed(&key).unwrap().der());
    let client = Client::new().await;
    let there = |is_right: fn(&Value, &str) -> bool| {
        let (client, authority) = (&client, &authority);
        async move {
            loop {
                let map = client.get(AUTHENTICATION_CONFIGMAP).await.json();
                if is_right(&map, authority) {
                    return map;
                }
                tokio::task::yield_now().await;
            }
        }
    };
    let (updater, trust) =
        Updater::new(ClusterAuthenticationInfo { client_ca: authority.clone(), request_header: None });
    client.api.publish(trust);
    let map = there(|map, authority| map["data"] == json!({"client-ca-file": authority})).await;
    assert_eq!(map["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    assert_eq!(client.delete(AUTHENTICATION_CONFIGMAP).await.code, 200);
    there(|map, authority| map["data"]["client-ca-file"] == authority).await;

    let headers = ProxyHeaders::usual();
    let proxies = RequestHeaderInfo { ca: authority.clone(), allowed_names: Vec::new(), headers };
    let other = client.restarted().await;
    other.api.publish(Current::fixed(ClusterAuthenticationInfo {
        client_ca: String::new(),
        request_header: Some(proxies),
    }));
    let map = there(|map, _| map["data"]["requestheader-uid-headers"].is_string()).await;
    assert_eq!(map["data"]["client-ca-file"], authority);
    assert_eq!(map["data"]["requestheader-allowed-names"], "[]");
    assert_eq!(
        client.merge(AUTHENTICATION_CONFIGMAP, &json!({"data": {"client-ca-file": null}})).await.code,
        200
    );
    there(|map, authority| map["data"]["client-ca-file"] == authority).await;

    // A reloaded CA file updates the ConfigMap.
    let next = rcgen::CertificateParams::new(["next".to_owned()]).unwrap();
    let next = x509::pem::encode(x509::pem::CERTIFICATE, next.self_signed(&key).unwrap().der());
    updater.set(ClusterAuthenticationInfo { client_ca: next.clone(), request_header: None });
    let is_there =
        |map: &Value| map["data"]["client-ca-file"].as_str().is_some_and(|bundle| bundle.contains(&next));
    while !is_there(&client.get(AUTHENTICATION_CONFIGMAP).await.json()) {
        tokio::task::yield_now().await;
    }
}
