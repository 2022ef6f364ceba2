//! Helpers of the tests.

use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};
use pgtest::PgServer;
use serde_json::json;
use store::{
    Error, Event, ListQuery, Metrics, Options, Postgres, PostgresOptions, Precondition, Store, Watch,
    WatchScope, Write,
};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

/// No test waits longer than this, however slow the machine: one that does is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// One server for all tests that do not stop it, each with a database of its own.
pub static SERVER: LazyLock<PgServer> =
    LazyLock::new(|| PgServer::start_with(&["max_connections=300"]).expect("PostgreSQL is installed"));

/// Runs a test, in a runtime of its own.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a machine that runs tests can start two threads");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test is stuck") });
}

/// A store of another server on the same database.
pub async fn store(url: &str, change: impl FnOnce(&mut PostgresOptions)) -> Store {
    let mut options = PostgresOptions::default();
    change(&mut options);
    let engine = Postgres::open(url, &options).await.expect("the database opens");
    let quiet = Options { compaction: None, ..Options::default() };
    Store::open(Arc::new(engine), quiet, &Metrics::unregistered()).await.expect("the store opens")
}

/// The reason why a database does not open.
pub async fn refused(url: &str) -> String {
    match Postgres::open(url, &PostgresOptions::default()).await {
        Ok(_) => panic!("it opened"),
        Err(Error::Open { reason }) => reason,
        Err(error) => panic!("not an error of opening: {error}"),
    }
}

/// A session of the administrator.
pub struct Admin {
    client: Client,
    _connection: JoinSet<()>,
}

impl Admin {
    pub async fn connect(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server is ours");
        let mut tasks = JoinSet::new();
        tasks.spawn(async { drop(connection.await) });
        Self { client, _connection: tasks }
    }

    pub async fn execute(&self, sql: &str) {
        self.client.batch_execute(sql).await.expect("the statement is right");
    }

    /// A number.
    pub async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.expect("the statement is right").get(0)
    }
}

pub fn configmaps() -> Resource {
    Resource::new("", "configmaps")
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::new(&configmaps(), "ns", name)
}

fn body(name: &str, data: &str) -> Encoded {
    let object = json!({"data": data, "metadata": {"name": name, "namespace": "ns"}});
    Encoded::new(object.as_object().expect("the literal is an object"))
}

fn labels(data: &str) -> Attributes {
    Attributes::new(vec![("data".to_owned(), data.to_owned())], vec![])
}

pub fn create(name: &str, data: &str) -> Write {
    let uid = Uid(format!("uid-{name}"));
    Write::Create { key: key(name), uid, attributes: labels(data), body: body(name, data) }
}

pub fn update(name: &str, expect: Precondition, data: &str) -> Write {
    Write::Update { key: key(name), expect, attributes: labels(data), body: body(name, data) }
}

pub fn delete(name: &str) -> Write {
    let expect = Precondition::default();
    Write::Delete { key: key(name), expect, attributes: labels("gone"), body: body(name, "gone") }
}

pub fn all() -> ListQuery {
    ListQuery {
        resource: configmaps(),
        namespace: None,
        selector: Selector::default(),
        at: None,
        after: None,
        limit: 100_000,
    }
}

/// The newest revision. After a crash of PostgreSQL one session may be back before another.
pub async fn revision(store: &Store) -> Revision {
    loop {
        match store.clock().await {
            Ok(clock) => return clock.current,
            Err(Error::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(other) => panic!("{other}"),
        }
    }
}

pub async fn watch(store: &Store, from: Revision) -> Watch {
    let scope =
        WatchScope { resource: configmaps(), namespace: None, name: None, selector: Selector::default() };
    store.watch(scope, from).await.expect("the watch starts")
}

/// The events up to a revision. A database that is unavailable for a while does not end a watch.
pub async fn events_through(watch: &mut Watch, from: Revision, last: Revision) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    while events.last().map_or(from, |event| event.change.revision) < last {
        match watch.next().await {
            Ok(more) => events.extend(more),
            Err(Error::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(error) => panic!("{error}"),
        }
    }
    events
}

/// Every revision once, in order, none left out.
pub fn assert_complete(events: &[Event], from: Revision, last: Revision) {
    let revisions: Vec<u64> = events.iter().map(|event| event.change.revision.0).collect();
    assert!(revisions.iter().copied().eq(from.0 + 1..=last.0), "from {from} to {last}: {revisions:?}");
}

/// Waits until a condition holds. The test's own time limit ends the wait.
pub async fn until<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
