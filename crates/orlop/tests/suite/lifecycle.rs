//! Start, second start, stop.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, PostParams, VersionMatch, WatchParams},
};
use serde_json::json;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    backups::watch_refusal,
    kube_rs::client,
    server::{PATIENCE, Server},
};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test]
async fn the_first_start_creates_the_data_folder_and_prints_the_kubectl_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("new/data");
    fs::create_dir(folder.path().join("new")).unwrap();
    let server = Server::start("up", &data, &[]).await;

    assert_eq!(server.kubeconfig, data.join("kubeconfig"));
    assert_eq!(fs::metadata(&server.kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    let kubeconfig = read(&server.kubeconfig);
    assert!(kubeconfig.contains(&format!("server: https://{}\n", server.address)), "{kubeconfig}");
    for part in ["certificate-authority-data: ", "client-certificate-data: ", "client-key-data: "] {
        assert!(kubeconfig.contains(part), "{part}");
    }
    let hint = format!("kubectl --kubeconfig {} get namespaces", server.kubeconfig.display());
    assert!(server.printed.iter().any(|line| line.ends_with(&hint)), "{:?}", server.printed);
    assert!(data.join("orlop.db").exists());
}

#[tokio::test]
async fn the_second_start_reuses_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let files = ["pki/ca.crt", "pki/ca.key", "pki/server.crt", "pki/admin.crt", "pki/admin.key"];
    let contents = || files.map(|file| read(&data.join(file)));

    Server::start("up", &data, &[]).await.stop("TERM").await;
    let before = contents();
    let server = Server::start("serve", &data, &[]).await;
    assert_eq!(before, contents());
    assert!(
        read(&server.kubeconfig).contains(&server.address),
        "the port is another one, and the file says so"
    );
}

#[tokio::test]
async fn signals_stop_it_with_success_under_open_connections_and_watches() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT"] {
        let mut server = Server::start("up", &folder.path().join("data"), &[]).await;
        let _silent = TcpStream::connect(&server.address).await.unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
        let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        let reading = async { while watch.next().await.is_some() {} };
        let (status, ()) = tokio::join!(server.stop(signal), reading);
        assert!(status.success(), "{signal}: {status}, {}", server.log());
        assert!(server.log().contains("stopping"), "{}", server.log());
    }
}

#[tokio::test]
async fn a_low_open_file_limit_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_behind("ulimit -S -n 100", "up", &folder.path().join("data")).await;
    let [soft, hard] = server.file_limits();
    assert_ne!(hard, "100", "there is something to raise");
    assert_eq!(soft, hard);
}

#[tokio::test]
async fn old_revisions_expire_after_the_history_period() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--controllers=", "--history", "10s"];
    let server = Server::start("up", &folder.path().join("data"), &arguments).await;
    let client = client(&server).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let first = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let map = json!({"metadata": {"name": "a"}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let old = ListParams::default().at(&first).matching(VersionMatch::Exact);
    assert!(maps.list(&old).await.unwrap().items.is_empty(), "as it was");
    let expired = async {
        loop {
            match maps.list(&old).await {
                Err(kube::Error::Api(status)) => return status,
                Err(error) => panic!("{error}"),
                Ok(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    };
    let status = timeout(PATIENCE, expired).await.expect("history is compacted at the pace of --history");
    assert_eq!((status.code, &*status.reason), (410, "Expired"));
    assert_eq!(watch_refusal(&client, first.parse().unwrap()).await, 410);
}
