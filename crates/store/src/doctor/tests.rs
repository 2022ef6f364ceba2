//! A healthy database passes, and each kind of damage is found, on both engines.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pgtest::PgServer;
use tempfile::TempDir;
use tokio_postgres::NoTls;

use super::{Report, postgres, sqlite};
use crate::conformance::kit::object;
use crate::engine::{Engine, Sweep, beyond};
use crate::types::Write;
use crate::{FileOptions, Postgres, PostgresOptions, Sqlite};

static SERVER: LazyLock<PgServer> = LazyLock::new(|| PgServer::start().expect("PostgreSQL is installed"));

/// Objects with labels and fields, of which some were changed, deleted, made again and compacted.
async fn fill(engine: &dyn Engine) {
    let web = object("ns/web").label("app", "web").field("status.phase", "Running");
    let old = object("ns/old").label("app", "old");
    let commit = async |write: Write| {
        let committed = engine.commit(vec![vec![write]]).await.expect("it is ours");
        committed.outcomes.into_iter().for_each(|outcome| drop(outcome.expect("it succeeds")));
    };
    for write in [web.create(), old.create(), object("other/db").create(), old.clone().data("1").put()] {
        commit(write).await;
    }
    let current = engine.clock().await.expect("it is readable").current;
    while engine.compact(current, 100).await.expect("it can be compacted") != Sweep::Done {}
    for write in [web.clone().label("tier", "front").put(), old.remove(), web.clone().data("2").put()] {
        commit(write).await;
    }
}

fn found(report: &Report) -> Vec<&str> {
    assert!(report.checks.len() > 10);
    report.findings.iter().map(|finding| finding.check).collect()
}

/// Statements that damage a database, with the check that finds it. `MARKS` is the table with the compaction mark.
const DAMAGE: &[(&str, &str)] = &[
    ("UPDATE clock SET revision = revision - 1", "the clock is not behind the log"),
    ("UPDATE MARKS SET compacted = 1000", "the compaction mark is not ahead of the clock"),
    (
        "DELETE FROM changes WHERE revision = (SELECT max(revision) - 1 FROM changes)",
        "the log has no gap above the compaction mark",
    ),
    ("UPDATE heads SET revision = 1 WHERE name = 'db'", "every object is in the log"),
    (
        "INSERT INTO heads (resource, namespace, name, revision)
         SELECT resource, namespace, name, revision FROM changes WHERE action = 3",
        "every object is in the log",
    ),
    (
        "UPDATE heads SET revision = (SELECT max(previous) FROM changes WHERE name = 'web') WHERE name = 'web'",
        "every object is at the last change of its key",
    ),
    ("DELETE FROM heads WHERE name = 'db'", "every key whose last change is no deletion has an object"),
    (
        "UPDATE changes SET previous = previous + 1 WHERE revision = (SELECT max(revision) FROM changes)",
        "every change follows the version that it replaced",
    ),
    ("DELETE FROM history WHERE name = 'web'", "every replaced version is in the history"),
    ("UPDATE history SET superseded_by = superseded_by + 100", "every version in the history was replaced"),
    ("UPDATE counts SET objects = objects + 1 WHERE namespace = 'ns'", "the counts are those of the objects"),
    ("DELETE FROM counts WHERE namespace = 'other'", "the counts are those of the objects"),
    ("DELETE FROM entries WHERE name = 'web'", super::INDEX),
    ("UPDATE entries SET name = 'db' WHERE name = 'web'", super::INDEX),
];

async fn healthy_file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let path = folder.path().join("orlop.db");
    let engine = Sqlite::open(&FileOptions::new(&path)).expect("the folder is ours");
    fill(&engine).await;
    engine.close().await;
    (folder, path)
}

fn damage_file(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).expect("nobody has it");
    connection.execute_batch(sql).expect("it is a statement");
}

#[tokio::test]
async fn a_healthy_file_passes_and_stays_as_it_is() {
    let (_folder, path) = healthy_file().await;
    let before = fs::read(&path).unwrap();
    assert_eq!(found(&sqlite(&path).unwrap()), Vec::<&str>::new());
    assert_eq!(fs::read(&path).unwrap(), before);
    let engine = Sqlite::open(&FileOptions::new(&path)).unwrap();
    assert!(sqlite(&path).unwrap_err().to_string().contains("in use"));
    engine.advance(beyond(engine.clock().await.unwrap().current)).await.unwrap();
    engine.close().await;
    assert_eq!(found(&sqlite(&path).unwrap()), Vec::<&str>::new(), "also after the clock was advanced");
}

#[tokio::test]
async fn every_kind_of_damage_to_a_file_is_found_with_a_remedy() {
    let (folder, path) = healthy_file().await;
    let copy = folder.path().join("copy.db");
    for (sql, check) in DAMAGE {
        fs::copy(&path, &copy).unwrap();
        damage_file(&copy, &sql.replace("MARKS", "clock"));
        let report = sqlite(&copy).unwrap();
        assert!(found(&report).contains(check), "{sql}: {:?}", report.findings);
        assert!(report.findings.iter().all(|finding| finding.remedy.contains("orlop restore")));
    }
}

#[tokio::test]
async fn a_torn_page_is_found() {
    let (_folder, path) = healthy_file().await;
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 4096;
    bytes[last..last + 200].fill(0xee);
    fs::write(&path, bytes).unwrap();
    let report = sqlite(&path).unwrap();
    assert!(found(&report).contains(&"the file is a sound SQLite database"), "{:?}", report.findings);
}

async fn execute(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server runs");
    let work = async {
        client.batch_execute("SET search_path = orlop").await.expect("it is ours");
        client.batch_execute(sql).await.expect("it is a statement");
    };
    tokio::select! {
        () = work => {}
        ended = connection => panic!("{ended:?}"),
    }
}

#[tokio::test]
async fn every_kind_of_damage_to_postgresql_is_found_and_a_healthy_one_passes() {
    let healthy = async || {
        let url = SERVER.create_database().expect("the server runs");
        let engine = Postgres::open(&url, &PostgresOptions::default()).await.expect("it opens");
        fill(&engine).await;
        engine.close().await;
        url
    };
    let url = healthy().await;
    assert_eq!(found(&postgres(&url, None).await.unwrap()), Vec::<&str>::new());
    for (sql, check) in DAMAGE {
        let url = healthy().await;
        execute(&url, &sql.replace("MARKS", "compaction")).await;
        let report = postgres(&url, None).await.unwrap();
        assert!(found(&report).contains(check), "{sql}: {:?}", report.findings);
    }
}
