//! Several servers in one process: in memory and in a folder, isolated from each other, stopped in order.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::{path::Path, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use server::{Config, Identity, Listen, Server, loopback};

/// Far longer than a stop takes on a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

async fn create(client: Client, name: &str) -> kube::Result<ConfigMap> {
    let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    config_maps(client).create(&PostParams::default(), &map).await
}

async fn names(client: Client) -> Vec<String> {
    let listed = config_maps(client).list(&ListParams::default()).await.unwrap();
    let names = listed.items.into_iter().filter_map(|map| map.metadata.name);
    // The root CA publisher creates it in every namespace.
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

fn in_folder(folder: &Path) -> Config {
    Config::in_folder(folder, "127.0.0.1:0".parse().unwrap())
}

async fn over_network(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig().unwrap()).unwrap();
    let options = KubeConfigOptions::default();
    Client::try_from(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap()).unwrap()
}

async fn stop(server: Server) {
    tokio::time::timeout(PATIENCE, server.shutdown()).await.expect("the server stops").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_one_process_share_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = Server::start(Config::in_memory()).await.unwrap();
    let second = Server::start(Config::in_memory()).await.unwrap();
    let third = Server::start(in_folder(folder.path())).await.unwrap();
    assert_eq!((first.address(), first.kubeconfig()), (None, None));

    create(first.client(), "first").await.unwrap();
    create(third.client(), "third").await.unwrap();
    assert_eq!(names(first.client()).await, ["first"]);
    assert_eq!(names(second.client()).await, [""; 0]);
    assert_eq!(names(over_network(&third).await).await, ["third"]);

    let client = first.client();
    stop(first).await;
    create(client, "late").await.expect_err("a stopped server answers nothing");
    create(second.client(), "second").await.unwrap();
    stop(second).await;
    stop(third).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_objects_and_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(in_folder(folder.path())).await.unwrap();
    let (path, written) = (server.kubeconfig_path().unwrap().to_owned(), server.kubeconfig().unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    create(server.client(), "kept").await.unwrap();
    stop(server).await;

    let server = Server::start(in_folder(folder.path())).await.unwrap();
    assert_eq!(names(over_network(&server).await).await, ["kept"]);
    let user = |text: &str| text[text.find("client-certificate-data").unwrap()..].to_owned();
    assert_eq!(user(&server.kubeconfig().unwrap()), user(&written), "certificates are used again");
    let occupied = Config {
        listen: Some(Listen { address: server.host_and_port().unwrap().parse().unwrap(), advertise: None }),
        ..Config::in_memory()
    };
    let error = Server::start(occupied).await.unwrap_err().to_string();
    assert!(error.contains("in use"), "{error}");
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_memory_serves_over_the_network_if_it_listens() {
    let listen = Some(Listen { address: "127.0.0.1:0".parse().unwrap(), advertise: None });
    let server = Server::start(Config { listen, ..Config::in_memory() }).await.unwrap();
    assert!(server.kubeconfig_path().is_none());
    create(over_network(&server).await, "remote").await.unwrap();
    assert_eq!(names(server.client()).await, ["remote"]);
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rbac_decides_about_in_process_clients() {
    let server = Server::start(Config::in_memory()).await.unwrap();
    let jane = server.client_as(Identity::authenticated("jane", []));
    match create(jane, "forbidden").await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403),
        other => panic!("{other:?}"),
    }
    create(server.client_as(loopback::apiserver()), "allowed").await.unwrap();
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_fails_is_reported_and_the_stop_returns_it() {
    let server = Server::start(Config::in_memory()).await.unwrap();
    assert!(server.api().inject_fault("the RBAC informer"));
    let failure = tokio::time::timeout(PATIENCE, server.failed()).await.expect("the server fails");
    let expected = "the API server failed: the RBAC informer panicked: an injected fault";
    assert!(failure.to_string().starts_with(expected), "{failure}");
    let stopped = server.shutdown().await.unwrap_err();
    assert_eq!(stopped.to_string(), failure.to_string());
}
