//! The objects that a server has before anybody makes one.

use apiserver::ApiServer;

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

#[tokio::test]
async fn a_server_that_starts_again_makes_only_what_is_missing() {
    let client = Client::new().await;
    let restart = || async {
        let before = client.store.clock().await.unwrap().current;
        ApiServer::builder(client.store.clone()).build().await.unwrap();
        client.store.clock().await.unwrap().current.0 - before.0
    };
    assert_eq!(restart().await, 0);
    let probes = format!("{FLOW_SCHEMAS}/probes");
    assert_eq!(client.delete(&probes).await.code, 200);
    assert_eq!(restart().await, 1);
    assert_eq!(client.get(&probes).await.code, 200);
}
