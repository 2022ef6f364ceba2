//! The objects that a server has before anybody makes one.

use std::sync::Arc;

use apiserver::ApiServer;
use prometheus_client::registry::Registry;
use store::{Metrics, Options, Sqlite, Store};

use crate::client::Client;

const FLOW_SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

#[tokio::test]
async fn a_server_begins_with_what_every_cluster_has() {
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

/// So a kill before the first answer leaves all of them or none, and it waits for the disk once.
#[tokio::test]
async fn what_is_there_before_the_first_answer_is_one_commit_and_a_second_start_has_none() {
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
    start().await.unwrap().ready().await;
    assert_eq!(commits(), all);
}

#[tokio::test]
async fn a_server_that_starts_again_makes_only_what_is_missing() {
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
