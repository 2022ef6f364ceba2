//! Several stores on one database, and databases that fail, with a scripted engine.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use model::Resource;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::*;
use crate::conformance::kit::*;
use crate::engine::{Bound, Changes, Committed, Sweep, Transaction};
use crate::{EventKind, Sqlite};

/// One of several servers on a shared database: it learns of the others' commits when its bell is rung.
struct Server {
    database: Arc<Sqlite>,
    bell: Notify,
    commits_fail: AtomicBool,
    log_fails: AtomicBool,
}

impl Server {
    fn on(database: &Arc<Sqlite>) -> Arc<Self> {
        Arc::new(Self {
            database: Arc::clone(database),
            bell: Notify::new(),
            commits_fail: AtomicBool::new(false),
            log_fails: AtomicBool::new(false),
        })
    }

    async fn store(self: &Arc<Self>) -> Store {
        let options = Options { compaction: None, ..Options::default() };
        Store::open(self.clone(), options, &Metrics::unregistered()).await.unwrap()
    }
}

fn fault(fails: &AtomicBool) -> Result<(), Error> {
    let reason = "the disk is full".to_owned();
    if fails.load(Ordering::Relaxed) { Err(Error::Unavailable { reason }) } else { Ok(()) }
}

#[async_trait]
impl Engine for Server {
    async fn clock(&self) -> Result<ClockState, Error> {
        self.database.clock().await
    }

    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        // As if it came over a network: the waiting caller may be dropped.
        tokio::task::yield_now().await;
        self.database.get(key, at).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        self.database.list(query).await
    }

    async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error> {
        fault(&self.commits_fail)?;
        self.database.commit(batch).await
    }

    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error> {
        fault(&self.log_fails)?;
        self.database.changes(of, after, bound).await
    }

    async fn bell(&self) {
        self.bell.notified().await;
    }

    fn epoch(&self) -> u64 {
        // The compaction mark alone shows that the clock was advanced.
        0
    }

    async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
        self.database.older_than(age).await
    }

    async fn history_bytes(&self) -> Result<u64, Error> {
        self.database.history_bytes().await
    }

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        self.database.compact(through, limit).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        self.database.advance(to).await
    }

    async fn close(&self) {}
}

fn database() -> Arc<Sqlite> {
    Arc::new(Sqlite::in_memory().unwrap())
}

fn commits(metrics: &Metrics) -> u64 {
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("commits", "", metrics.commit_seconds.clone());
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("commits_count "));
    count.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

async fn put(store: &Store, name: &str) -> Revision {
    store.write(vec![object(&format!("ns/{name}")).create()]).await.unwrap()[0].revision
}

async fn names(watch: &mut Watch, count: usize) -> Vec<String> {
    next(watch, count).await.iter().map(|event| event.change.key.name.clone()).collect()
}

#[tokio::test]
async fn writes_during_a_hold_wait_and_share_a_commit() {
    let metrics = Metrics::unregistered();
    let options = Options { compaction: None, ..Options::default() };
    let store = Store::open(database(), options, &metrics).await.unwrap();
    let hold = store.hold().await;
    let names: Vec<String> = (0..10).map(|number| format!("object-{number}")).collect();
    let mut writes = std::pin::pin!(futures::future::join_all(names.iter().map(|name| put(&store, name))));
    assert!(futures::poll!(writes.as_mut()).is_pending());
    let before = store.clock().await.unwrap();
    assert!(before.is_untouched());
    drop(hold);
    let revisions = writes.await;
    let expected: Vec<Revision> = (1..=10).map(|step| Revision(before.current.0 + step)).collect();
    assert_eq!(revisions, expected);
    assert_eq!(commits(&metrics), 1);
    assert!(!store.clock().await.unwrap().is_untouched());
}

#[tokio::test]
async fn labels_and_fields_count_into_the_limits_of_a_batch() {
    let metrics = Metrics::unregistered();
    let options = Options { compaction: None, batch_entries: 10, ..Options::default() };
    let store = Store::open(database(), options, &metrics).await.unwrap();
    let labelled = |name: &str| {
        (0..8).fold(object(&format!("ns/{name}")), |object, n| object.label(&format!("l{n}"), "v"))
    };
    let writes = [labelled("a").create(), labelled("b").create(), object("ns/c").create()];
    let hold = store.hold().await;
    let mut writing = std::pin::pin!(futures::future::join_all(writes.map(|write| store.write(vec![write]))));
    assert!(futures::poll!(writing.as_mut()).is_pending());
    drop(hold);
    assert!(writing.await.iter().all(Result::is_ok));
    assert_eq!(commits(&metrics), 2, "the second object with many labels waits for the next batch");
}

#[tokio::test]
async fn changes_of_another_server_come_with_the_bell() {
    let database = database();
    let (here, there) = (Server::on(&database), Server::on(&database));
    let (ours, theirs) = (here.store().await, there.store().await);
    let mut watch = ours.watch(everything(), Revision(1)).await.unwrap();
    for n in 0..5 {
        put(&theirs, &format!("o{n}")).await;
    }
    here.bell.notify_one();
    assert_eq!(names(&mut watch, 5).await, ["o0", "o1", "o2", "o3", "o4"]);
}

#[tokio::test]
async fn a_commit_brings_earlier_commits_of_other_servers_though_no_bell_rang() {
    let database = database();
    let (ours, theirs) = (Server::on(&database).store().await, Server::on(&database).store().await);
    let mut watch = ours.watch(everything(), Revision(1)).await.unwrap();
    for n in 0..20 {
        put(&theirs, &format!("theirs-{n:02}")).await;
        put(&ours, &format!("ours-{n:02}")).await;
    }
    let expected: Vec<String> =
        (0..20).flat_map(|n| [format!("theirs-{n:02}"), format!("ours-{n:02}")]).collect();
    assert_eq!(names(&mut watch, 40).await, expected);
}

#[tokio::test]
async fn a_bell_without_reason_does_no_harm() {
    let here = Server::on(&database());
    let store = here.store().await;
    let mut watch = store.watch(everything(), Revision(1)).await.unwrap();
    for n in 0..50 {
        here.bell.notify_one();
        put(&store, &format!("o{n}")).await;
        here.bell.notify_one();
    }
    assert_eq!(names(&mut watch, 50).await.len(), 50);
}

#[tokio::test]
async fn a_server_that_was_away_for_too_long_expires_its_watches_and_goes_on() {
    let database = database();
    let (here, there) = (Server::on(&database), Server::on(&database));
    let (ours, theirs) = (here.store().await, there.store().await);
    let mut watch = ours.watch(everything(), Revision(1)).await.unwrap();
    put(&theirs, "a").await;
    let last = put(&theirs, "b").await;
    theirs.compact(last).await.unwrap();
    here.bell.notify_one();
    assert!(matches!(watch.next().await, Err(Error::Expired { .. })));
    let mut watch = ours.watch(everything(), last).await.unwrap();
    put(&ours, "c").await;
    assert_eq!(names(&mut watch, 1).await, ["c"]);
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_tried_again() {
    let database = database();
    let (here, there) = (Server::on(&database), Server::on(&database));
    let (ours, theirs) = (here.store().await, there.store().await);
    let mut watch = ours.watch(everything(), Revision(1)).await.unwrap();
    here.log_fails.store(true, Ordering::Relaxed);
    put(&theirs, "a").await;
    put(&ours, "b").await;
    here.log_fails.store(false, Ordering::Relaxed);
    let events = next(&mut watch, 2).await;
    assert!(events.iter().all(|event| event.kind == EventKind::Added));
}

#[tokio::test]
async fn a_next_that_is_dropped_while_it_loads_a_last_version_loses_nothing() {
    let store = Server::on(&database()).store().await;
    let mut watch = store.watch(watching(vec![label_is("k", "v")]), Revision(1)).await.unwrap();
    let selected = object("ns/a").label("k", "v").data("selected");
    store.write(vec![selected.create(), object("ns/a").put()]).await.unwrap();
    let mut other = store.watch(everything(), Revision(1)).await.unwrap();
    next(&mut other, 2).await;
    // Both changes are there, so the watch only waits for the last version.
    assert!(futures::poll!(Box::pin(watch.next())).is_pending());
    assert_eq!(watch.position(), Revision(1));
    let seen: Vec<EventSummary> = next(&mut watch, 2).await.iter().map(seen).collect();
    assert_eq!(seen, [added("a", "selected"), deleted("a", "selected")]);
}

#[tokio::test]
async fn closing_does_not_wait_for_a_log_that_cannot_be_read() {
    let database = database();
    let (here, there) = (Server::on(&database), Server::on(&database));
    let (ours, theirs) = (here.store().await, there.store().await);
    here.log_fails.store(true, Ordering::Relaxed);
    put(&theirs, "a").await;
    put(&ours, "b").await;
    ours.close().await;
}

#[tokio::test]
async fn a_failed_commit_fails_its_writers_and_the_next_one_works_when_the_fault_is_gone() {
    let here = Server::on(&database());
    let store = here.store().await;
    here.commits_fail.store(true, Ordering::Relaxed);
    let mut writers = JoinSet::new();
    for n in 0..10 {
        let store = store.clone();
        writers.spawn(async move { store.write(vec![object(&format!("ns/o{n}")).create()]).await });
    }
    for outcome in writers.join_all().await {
        assert_eq!(outcome.unwrap_err(), Error::Unavailable { reason: "the disk is full".into() });
    }
    here.commits_fail.store(false, Ordering::Relaxed);
    assert_eq!(put(&store, "a").await, Revision(2), "the failed writes took no revision");
}

#[tokio::test]
async fn the_last_clone_of_a_store_ends_its_watches() {
    let store = Server::on(&database()).store().await;
    let mut watch = store.watch(everything(), Revision(1)).await.unwrap();
    drop(store);
    assert!(matches!(watch.next().await, Err(Error::Unavailable { .. })));
}

#[tokio::test]
async fn metrics_count_commits_and_watches() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = Metrics::new(&mut registry);
    let options = Options { compaction: None, ..Options::default() };
    let store = Store::open(database(), options, &metrics).await.unwrap();
    let mut watch = store.watch(everything(), Revision(1)).await.unwrap();
    let last = put(&store, "a").await;
    next(&mut watch, 1).await;
    store.compact(last).await.unwrap();
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let expected = [
        "store_batch_writes_count 1",
        "store_commit_seconds_count 1",
        "store_watchers 1",
        "store_events_total 1",
        "store_compacted_revision 2",
    ];
    for line in expected {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(metrics.ring_bytes.get() > 0);
    drop(watch);
    assert_eq!(metrics.watchers.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn history_is_compacted_at_the_pace_at_which_it_is_kept() {
    let minute = Duration::from_secs(60);
    for (history, interval) in [(minute, minute), (15 * minute, 15 * minute), (600 * minute, 15 * minute)] {
        let metrics = Metrics::unregistered();
        let options = Options::keeping(history);
        assert_eq!(options.retention, history);
        let store = Store::open(database(), options, &metrics).await.unwrap();
        let begun = tokio::time::Instant::now();
        // The first run comes early, for servers that are often restarted.
        for (runs, due) in
            [(1, interval / 10), (2, interval / 10 + interval), (3, interval / 10 + 2 * interval)]
        {
            while metrics.compactions.get() < runs {
                tokio::time::sleep(interval / 100).await;
            }
            let passed = begun.elapsed();
            assert!(due <= passed && passed < due + interval / 20, "run {runs}: {passed:?} of {due:?}");
        }
        store.close().await;
    }
}

#[tokio::test]
async fn a_task_that_panics_is_reported_by_its_name() {
    let open = || async {
        let options = Options { compaction: Some(Duration::from_secs(3600)), ..Options::default() };
        Store::open(database(), options, &Metrics::unregistered()).await.unwrap()
    };
    let names = open().await.inner.tasks.names();
    assert_eq!(names, ["the publisher", "the committer", "the compactor"]);
    for name in names {
        let store = open().await;
        assert!(futures::poll!(std::pin::pin!(store.failed())).is_pending());
        assert!(store.inject_fault(&name));
        assert_eq!(store.failed().await.task, name);
    }
}

#[tokio::test]
async fn a_store_that_is_closed_has_not_failed() {
    let store = Server::on(&database()).store().await;
    put(&store, "a").await;
    store.close().await;
    assert_eq!(store.inner.tasks.failure(), None);
}

#[tokio::test]
async fn a_failed_commit_and_a_log_that_cannot_be_read_are_told_until_they_are_over() {
    let server = Server::on(&database());
    let store = server.store().await;
    put(&store, "a").await;
    assert!(!store.commits_fail());
    server.commits_fail.store(true, Ordering::Relaxed);
    store.write(vec![object("ns/b").create()]).await.unwrap_err();
    assert!(store.commits_fail());
    server.commits_fail.store(false, Ordering::Relaxed);
    put(&store, "c").await;
    assert!(!store.commits_fail());

    let other = Server::on(&server.database).store().await;
    server.log_fails.store(true, Ordering::Relaxed);
    put(&other, "d").await;
    server.bell.notify_one();
    while store.publisher_lag() < Duration::from_millis(300) {
        tokio::task::yield_now().await;
    }
    server.log_fails.store(false, Ordering::Relaxed);
    while !store.publisher_lag().is_zero() {
        tokio::task::yield_now().await;
    }
}
