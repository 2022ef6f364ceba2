//! `orlop backup` and `orlop restore`, with real processes: under load, refused, and without a server.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams},
};
use pgtest::PgServer;
use tokio::{task::JoinSet, time::timeout};

use crate::{
    kube_rs::client,
    server::{self, PATIENCE, Server},
};

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

/// Runs `orlop`, which must succeed; returns its output.
async fn succeed(arguments: &[&str]) -> String {
    let output = server::run(arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Runs `orlop`, which must fail; returns its error message.
async fn fail(arguments: &[&str]) -> String {
    let output = server::run(arguments).await;
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).expect("it prints text")
}

pub fn config_map(name: String) -> ConfigMap {
    let labels = Some([("made".to_owned(), "here".to_owned())].into());
    ConfigMap {
        metadata: ObjectMeta { name: Some(name), labels, ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

/// Names of acknowledged objects with their revisions.
type Acknowledged = Arc<Mutex<Vec<(String, u64)>>>;

pub fn version(object: &ConfigMap) -> u64 {
    object.resource_version().expect("the server sets it").parse().expect("it is a number")
}

/// Creates and changes objects until it is dropped.
fn write_without_end(client: &Client, acknowledged: &Acknowledged) -> JoinSet<()> {
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let (maps, acknowledged) = (Api::default_namespaced(client.clone()), acknowledged.clone());
        writers.spawn(async move {
            for number in 0.. {
                let name = format!("w{writer}-{number}");
                let Ok(made) = maps.create(&PostParams::default(), &config_map(name.clone())).await else {
                    return;
                };
                acknowledged.lock().expect("nobody panics").push((name, version(&made)));
            }
        });
    }
    writers
}

async fn until_acknowledged(acknowledged: &Acknowledged, count: usize) -> Vec<(String, u64)> {
    let enough = async {
        loop {
            let seen = acknowledged.lock().expect("nobody panics").clone();
            if seen.len() >= count {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, enough).await.expect("writers go on")
}

pub async fn names_and_version(client: &Client) -> (Vec<String>, u64) {
    let list = Api::<ConfigMap>::default_namespaced(client.clone()).list(&ListParams::default()).await;
    let list = list.expect("it can be listed");
    let version = list.metadata.resource_version.expect("lists have one").parse().expect("it is a number");
    (list.items.iter().map(ResourceExt::name_any).collect(), version)
}

/// The status code with which a watch from a revision is refused.
pub async fn watch_refusal(client: &Client, from: u64) -> u16 {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let mut events = match maps.watch(&WatchParams::default(), &from.to_string()).await {
        Ok(events) => events.boxed(),
        Err(kube::Error::Api(status)) => return status.code,
        Err(error) => panic!("{error}"),
    };
    match timeout(PATIENCE, events.next()).await.expect("an event comes") {
        Some(Ok(WatchEvent::Error(status))) => status.code,
        Some(Err(kube::Error::Api(status))) => status.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_backup_taken_under_load_restores_every_acknowledged_write_and_expires_older_revisions() {
    let folder = tempfile::tempdir().unwrap();
    let (data, archive) = (folder.path().join("data"), folder.path().join("backup.tar"));
    let mut server = Server::start("up", &data, &["--controllers="]).await;
    let client_of_lost = client(&server).await;
    let acknowledged = Acknowledged::default();
    let mut writers = write_without_end(&client_of_lost, &acknowledged);
    let before = until_acknowledged(&acknowledged, 100).await;
    let said = succeed(&["backup", "--data", text(&data), text(&archive)]).await;
    assert!(said.contains("with the keys of the server"), "{said}");
    assert!(server.log().contains("the store has copied its database for a backup"), "{}", server.log());
    assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!data.join("orlop.db-backup").exists(), "the copy is gone");
    let during = acknowledged.lock().unwrap().len();
    let lost = until_acknowledged(&acknowledged, during + 50).await;
    writers.shutdown().await;
    server.stop("KILL").await;

    let restored = folder.path().join("restored");
    let said = succeed(&["restore", "--data", text(&restored), text(&archive)]).await;
    assert!(said.contains("older revisions have expired"), "{said}");
    for file in ["orlop.db", "pki/ca.key", "pki/sa.key", "kubeconfig"] {
        let mode = fs::metadata(restored.join(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}");
    }
    assert_eq!(fs::read(data.join("pki/ca.crt")).unwrap(), fs::read(restored.join("pki/ca.crt")).unwrap());

    let said = succeed(&["doctor", "--data", text(&restored)]).await;
    assert!(said.ends_with("nothing found\n"), "{said}");
    let server = Server::start("up", &restored, &["--controllers="]).await;
    let client = client(&server).await;
    let (names, version) = names_and_version(&client).await;
    for (name, _) in &before {
        assert!(names.contains(name), "{name} was acknowledged before the backup began");
    }
    let newest = lost.iter().map(|(_, version)| *version).max().unwrap();
    assert!(version > newest + 1_000_000, "{version} is above {newest}");
    assert_eq!(watch_refusal(&client, before[0].1).await, 410);
    assert_eq!(watch_refusal(&client, newest).await, 410);
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let made = maps.create(&PostParams::default(), &config_map("after".to_owned())).await.unwrap();
    assert!(self::version(&made) > version);
}

#[tokio::test]
async fn a_restore_refuses_existing_data_and_damaged_archives() {
    let folder = tempfile::tempdir().unwrap();
    let (data, archive) = (folder.path().join("data"), folder.path().join("backup.tar"));
    let mut server = Server::start("up", &data, &["--controllers="]).await;
    succeed(&["backup", "--data", text(&data), text(&archive)]).await;
    let restore = ["restore", text(&archive), "--data", text(&data)];
    let said = fail(&restore).await;
    assert!(said.contains("is not empty") && said.contains("--force"), "{said}");
    let forced = [&restore[..], &["--force"]].concat();
    let said = fail(&forced).await;
    assert!(said.contains("in use by another server"), "{said}");
    server.stop("TERM").await;

    let mut bytes = fs::read(&archive).unwrap();
    bytes[5000] ^= 1;
    let damaged = folder.path().join("damaged.tar");
    fs::write(&damaged, bytes).unwrap();
    let database = fs::read(data.join("orlop.db")).unwrap();
    let said = fail(&["restore", text(&damaged), "--data", text(&data), "--force"]).await;
    assert!(said.contains("checksums"), "{said}");
    assert_eq!(fs::read(data.join("orlop.db")).unwrap(), database, "nothing was changed");
    assert!(!data.join(".restore").exists());

    // Without a server the file itself is copied.
    fs::write(data.join("orlop.db-backup"), "left by a crash").unwrap();
    succeed(&["backup", "--data", text(&data), text(&archive)]).await;
    let said = succeed(&forced).await;
    assert!(said.contains("what was there is in"), "{said}");
    Server::start("up", &data, &["--controllers="]).await;
}

#[tokio::test]
async fn a_backup_needs_get_on_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start("up", &data, &["--controllers="]).await;
    let client = client(&server).await;
    for user in ["ann", "system:anonymous"] {
        let request = Request::get("/orlop/backup").header("impersonate-user", user);
        let refused = client.request_text(request.body(Vec::new()).unwrap()).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{user}: {refused}");
    }
    let archive = folder.path().join("remote.tar");
    let kubeconfig = folder.path().join("kubeconfig");
    fs::copy(&server.kubeconfig, &kubeconfig).unwrap();
    let output = server::run(&["backup", "--kubeconfig", text(&kubeconfig), text(&archive)]).await;
    let [said, reported] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success() && said.contains("without keys"), "{said}{reported}");
    let copying = format!("the server at https://{}/ copies its database\n", server.address);
    assert!(reported.starts_with(&copying) && reported.contains("(100 %)\n"), "{reported}");
    let restored = folder.path().join("restored");
    let said = succeed(&["restore", "--data", text(&restored), text(&archive)]).await;
    assert!(said.contains("pki/sa.key") && !restored.join("pki").exists(), "{said}");
}

#[tokio::test]
async fn a_backup_of_postgresql_is_refused_and_restore_advance_advances_its_clock() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let (data, archive) = (folder.path().join("data"), folder.path().join("backup.tar"));
    let arguments = ["--postgres", &url, "--controllers="];
    let mut server = Server::start("serve", &data, &arguments).await;
    let (_, seen) = names_and_version(&client(&server).await).await;
    let said = fail(&["backup", "--data", text(&data), text(&archive)]).await;
    assert!(said.contains("pg_dump") && said.contains("docs/backup.md"), "{said}");
    assert!(!archive.exists());
    server.stop("TERM").await;
    succeed(&["restore", "--advance", "--postgres", &url]).await;
    let server = Server::start("serve", &data, &arguments).await;
    let client = client(&server).await;
    succeed(&["doctor", "--postgres", &url]).await;
    let (_, version) = names_and_version(&client).await;
    assert!(version > seen + 1_000_000, "{version} is above {seen}");
    assert_eq!(watch_refusal(&client, seen).await, 410);
}
