//! A typical kube-rs program: a typed `Api`, a `watcher`, and a reflector with its store.

use std::{future::ready, path::Path};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt, reflector, wait::await_condition, watcher, watcher::Event},
};
use serde_json::json;
use tokio::time::timeout;

use crate::server::{PATIENCE, Server};

/// Without controllers a namespace has only the objects of the test.
const ALONE: &[&str] = &["--controllers="];

pub async fn client(server: &Server) -> Client {
    client_of(&server.kubeconfig).await
}

/// A client by a kubeconfig, which is complete before its server is ready.
pub async fn client_of(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the file is a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("the file names a context")).expect("its certificates can be used")
}

/// A client of a server whose controllers have created the service account of the namespace, which every Pod
/// needs.
pub async fn client_for_pods(server: &Server) -> Client {
    let client = client(server).await;
    let accounts = Api::<ServiceAccount>::default_namespaced(client.clone());
    let is_there = |account: Option<&ServiceAccount>| account.is_some();
    let made = timeout(PATIENCE, await_condition(accounts, "default", is_there)).await;
    made.expect("it comes").expect("it can be watched");
    client
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("key".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn a_typed_api_creates_reads_updates_and_deletes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), ALONE).await;
    let client = client(&server).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(made.uid().is_some() && made.creation_timestamp().is_some());
    let patch = Patch::Merge(json!({"data": {"key": "2"}}));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let stale = maps.replace("a", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(&stale, kube::Error::Api(status) if status.is_conflict()), "{stale}");
    let twice = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap_err();
    assert!(matches!(&twice, kube::Error::Api(status) if status.is_already_exists()), "{twice}");
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["key"], "2");
    for name in ["b", "c"] {
        maps.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!((page.items.len(), page.metadata.remaining_item_count), (2, Some(1)));
    let rest = ListParams::default().limit(2).continue_token(&page.metadata.continue_.unwrap());
    assert_eq!(maps.list(&rest).await.unwrap().items[0].name_any(), "c");
    assert!(maps.delete("a", &DeleteParams::default()).await.unwrap().is_right());
    assert!(maps.get_opt("a").await.unwrap().is_none());
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    let version = client.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "35"));
}

#[tokio::test]
async fn typed_secrets_leases_and_namespaces() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    let client = client(&server).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let names: Vec<String> =
        namespaces.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret = Secret {
        metadata: ObjectMeta { generate_name: Some("s-".to_owned()), ..ObjectMeta::default() },
        string_data: Some([("password".to_owned(), "swordfish".to_owned())].into()),
        ..Secret::default()
    };
    let made = secrets.create(&PostParams::default(), &secret).await.unwrap();
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    assert_eq!(made.data.unwrap()["password"].0, b"swordfish");
    let leases: Api<Lease> = Api::namespaced(client, "kube-system");
    let lease = Lease {
        metadata: ObjectMeta { name: Some("leader".to_owned()), ..ObjectMeta::default() },
        spec: Some(LeaseSpec { holder_identity: Some("me".to_owned()), ..LeaseSpec::default() }),
    };
    let held = leases.create(&PostParams::default(), &lease).await.unwrap();
    leases.replace("leader", &PostParams::default(), &held).await.unwrap();
}

#[tokio::test]
async fn a_watcher_sees_the_state_and_then_every_change_in_both_list_modes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), ALONE).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    maps.create(&PostParams::default(), &config_map("before", "1")).await.unwrap();
    for (number, config) in
        [watcher::Config::default(), watcher::Config::default().streaming_lists()].into_iter().enumerate()
    {
        let mut events = watcher(maps.clone(), config).boxed();
        let mut next =
            async || timeout(PATIENCE, events.try_next()).await.expect("an event comes").unwrap().unwrap();
        assert!(matches!(next().await, Event::Init));
        assert!(matches!(next().await, Event::InitApply(map) if map.name_any() == "before"));
        assert!(matches!(next().await, Event::InitDone));
        let name = format!("live-{number}");
        maps.create(&PostParams::default(), &config_map(&name, "1")).await.unwrap();
        assert!(matches!(next().await, Event::Apply(map) if map.name_any() == name));
        maps.delete(&name, &DeleteParams::default()).await.unwrap();
        assert!(matches!(next().await, Event::Delete(map) if map.name_any() == name));
    }
}

#[tokio::test]
async fn a_reflector_store_follows_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), ALONE).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let (reader, writer) = reflector::store::<ConfigMap>();
    let events = watcher(maps.clone(), watcher::Config::default());
    let applied = reflector(writer, events).default_backoff().applied_objects();
    let (seen, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let keep_up = applied.try_for_each(|map| {
        seen.send(map.name_any()).unwrap();
        ready(Ok(()))
    });
    let write = async {
        reader.wait_until_ready().await.unwrap();
        for i in 0..20 {
            maps.create(&PostParams::default(), &config_map(&format!("m{i:02}"), "1")).await.unwrap();
        }
        while arrivals.recv().await.unwrap() != "m19" {}
    };
    let work = async {
        tokio::select! {
            ended = keep_up => panic!("the reflector ended: {ended:?}"),
            () = write => {}
        }
    };
    timeout(PATIENCE, work).await.expect("the last object arrives");
    let mut names: Vec<String> = reader.state().iter().map(|map| map.name_any()).collect();
    names.sort();
    assert_eq!(names.len(), 20);
    assert_eq!((names[0].as_str(), names[19].as_str()), ("m00", "m19"));
}
