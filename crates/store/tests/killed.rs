//! An acknowledged write survives the sudden end of the process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};
use store::{FileOptions, ListQuery, Metrics, Options, Sqlite, Store, Write};

/// Where the child writes; the test below starts this very program again with it set.
const FOLDER: &str = "STORE_TEST_FOLDER";

fn resource() -> Resource {
    Resource::new("", "configmaps")
}

async fn open(folder: &Path) -> Store {
    let engine = Sqlite::open(&FileOptions::new(folder.join("state.db"))).expect("it opens");
    Store::open(Arc::new(engine), Options::default(), &Metrics::unregistered()).await.expect("it starts")
}

fn create(name: &str) -> Write {
    let object = serde_json::json!({"metadata": {"name": name}, "data": "x".repeat(500)});
    Write::Create {
        key: ObjectKey::new(&resource(), "ns", name),
        uid: Uid(name.to_owned()),
        attributes: Attributes::default(),
        body: Encoded::new(object.as_object().expect("the literal is an object")),
    }
}

/// The child: writes from several tasks, and says each name and revision once the write is acknowledged. Without the variable it
/// is no test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = open(Path::new(&folder)).await;
    let start = store.clock().await.expect("readable").current;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0.. {
                let name = format!("from-{start}-{writer}-{n}");
                let written = store.write(vec![create(&name)]).await.expect("the write succeeds");
                println!("written {name} {}", written[0].revision);
            }
        });
    }
    writers.join_all().await;
}

#[tokio::test]
async fn what_was_acknowledged_before_a_kill_is_there_afterwards() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let program = std::env::current_exe().expect("a program knows itself");
    let mut acknowledged = Vec::new();
    for _ in 0..3 {
        let mut child = Command::new(&program)
            .args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let said = lines.map_while(Result::ok).filter_map(|line| {
            let (name, revision) = line.strip_prefix("written ")?.split_once(' ')?;
            Some((name.to_owned(), revision.parse::<Revision>().ok()?))
        });
        acknowledged.extend(said.take(200));
        child.kill().expect("it still runs");
        child.wait().expect("it has ended");
    }
    assert_eq!(acknowledged.len(), 600);
    let store = open(folder.path()).await;
    for (name, revision) in &acknowledged {
        let stored = store.get(&ObjectKey::new(&resource(), "ns", name), None).await.expect("readable");
        assert_eq!(stored.expect("it was acknowledged").revision, *revision);
    }
    let query = ListQuery {
        resource: resource(),
        namespace: None,
        selector: Selector::default(),
        at: None,
        after: None,
        limit: 1,
    };
    let page = store.list(&query).await.expect("readable");
    assert_eq!(page.total, Some(page.revision.0 - 1), "heads, counts and clock agree");
    store.close().await;
}
