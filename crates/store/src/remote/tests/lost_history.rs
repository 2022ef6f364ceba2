//! A database process that comes back with an older copy: restored, or put in place by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{ObjectKey, Revision};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::store;
use crate::conformance::kit::{all, everything, next, object, until};
use crate::engine::beyond;
use crate::remote::{Connector, Shared, Stream, serve};
use crate::{Durability, Engine, Error, FileOptions, ListQuery, Remote, Sqlite, Store, Watch};

/// Far longer than a check of the history takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that owns a database. It can end, and come back with the same database or with another one.
struct Process {
    folder: TempDir,
    shared: Arc<Mutex<Option<Arc<Shared>>>>,
    /// Ends the connections of a process when it changes.
    ends: watch::Sender<u64>,
}

fn open(path: &Path) -> Arc<Sqlite> {
    let mut options = FileOptions::new(path);
    options.durability = Durability::Process;
    Arc::new(Sqlite::open(&options).unwrap())
}

impl Process {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = Self { folder, shared: Arc::default(), ends: watch::Sender::new(0) };
        process.resume("first.db");
        process
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Comes back with a database.
    fn resume(&self, name: &str) {
        *self.shared.lock().unwrap() = Some(Arc::new(Shared::new(open(&self.path(name)))));
    }

    /// Ends: its connections break, and its database is closed.
    async fn end(&self) {
        let shared = self.shared.lock().unwrap().take().unwrap();
        self.ends.send_modify(|ends| *ends += 1);
        shared.close().await;
    }

    /// Copies the database of a process that has ended.
    fn copy(&self, from: &str, to: &str) {
        std::fs::copy(self.path(from), self.path(to)).unwrap();
    }

    /// A connector that finds nobody until `is_open`.
    fn gated_connector(&self, is_open: Arc<AtomicBool>) -> Connector {
        let connector = self.connector();
        Arc::new(move || match is_open.load(Ordering::SeqCst) {
            true => connector(),
            false => Box::pin(async { Err("nobody listens".to_owned()) }),
        })
    }

    fn connector(&self) -> Connector {
        let (shared, ends, serving) =
            (Arc::clone(&self.shared), self.ends.clone(), Mutex::new(JoinSet::new()));
        Arc::new(move || {
            let Some(shared) = shared.lock().unwrap().clone() else {
                return Box::pin(async { Err("nobody listens".to_owned()) });
            };
            let (ours, theirs) = tokio::io::duplex(4096);
            let mut ends = ends.subscribe();
            serving.lock().unwrap().spawn(serve(theirs, shared, async move {
                let _ = ends.changed().await;
            }));
            Box::pin(async { Ok(Box::new(ours) as Box<dyn Stream>) })
        })
    }
}

/// Every revision that a client got, with the object that it was of.
#[derive(Default)]
struct ClientRevisions(BTreeMap<Revision, ObjectKey>);

impl ClientRevisions {
    /// Asserts that a revision means one object for all clients.
    fn note(&mut self, revision: Revision, key: ObjectKey) {
        let before = self.0.insert(revision, key.clone());
        assert!(
            before.as_ref().is_none_or(|before| *before == key),
            "revision {revision} is of {key} and was of {before:?}"
        );
    }

    fn last(&self) -> Revision {
        *self.0.last_key_value().unwrap().0
    }
}

async fn write(store: &Store, of: &str, count: usize, seen: &mut ClientRevisions) {
    for number in 0..count {
        let object = object(&format!("ns/{of}-{number}"));
        let written = loop {
            match store.write(vec![object.create()]).await {
                Ok(written) => break written,
                Err(Error::Unavailable { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        seen.note(written[0].revision, object.key());
    }
}

async fn read(watch: &mut Watch, count: usize, seen: &mut ClientRevisions) {
    for event in next(watch, count).await {
        seen.note(event.change.revision, event.change.key.clone());
    }
}

/// The watch expires once, with no other event.
async fn assert_ended(watch: &mut Watch) {
    loop {
        match timeout(PATIENCE, watch.next()).await.expect("the watch is told") {
            Err(Error::Expired { .. }) => return,
            Err(Error::Unavailable { .. }) => tokio::task::yield_now().await,
            other => panic!("an event of a history that the watch does not follow: {other:?}"),
        }
    }
}

/// A revision from before the loss is too old for every kind of request.
async fn assert_too_old(store: &Store, requested: Revision) {
    let at = Some(requested);
    assert!(matches!(store.get(&object("ns/any").key(), at).await, Err(Error::Expired { .. })));
    assert!(matches!(store.list(&ListQuery { at, ..all() }).await, Err(Error::Expired { .. })));
    assert!(matches!(store.watch(everything(), requested).await.err(), Some(Error::Expired { .. })));
}

/// Relists and watches: the events that follow are complete.
async fn assert_goes_on(store: &Store, writer: &Store, of: &str, seen: &mut ClientRevisions) {
    let page = store.list(&all()).await.unwrap();
    assert!(page.revision >= seen.last(), "{} after {}", page.revision, seen.last());
    let mut watch = store.watch(everything(), page.revision).await.unwrap();
    write(writer, of, 3, seen).await;
    read(&mut watch, 3, seen).await;
}

async fn current(store: &Store) -> Revision {
    store.clock().await.unwrap().current
}

#[tokio::test]
async fn an_older_copy_behind_a_new_connection_ends_watches_and_reuses_no_revision() {
    let process = Process::start();
    let connector = process.connector();
    let stores = [store(&connector).await, store(&connector).await];
    let mut seen = ClientRevisions::default();
    write(&stores[0], "kept", 5, &mut seen).await;
    process.end().await;
    process.copy("first.db", "copy.db");
    process.resume("first.db");
    let from = seen.last();
    let mut watches = [
        stores[0].watch(everything(), from).await.unwrap(),
        stores[1].watch(everything(), from).await.unwrap(),
    ];
    write(&stores[1], "lost", 30, &mut seen).await;
    for watch in &mut watches {
        read(watch, 30, &mut seen).await;
    }
    let lost = seen.last();
    process.end().await;
    process.resume("copy.db");
    for watch in &mut watches {
        assert_ended(watch).await;
    }
    for store in &stores {
        assert_too_old(store, from).await;
        assert_too_old(store, lost).await;
        assert!(current(store).await > lost);
        assert_eq!(store.list(&all()).await.unwrap().items.len(), 5);
    }
    assert_goes_on(&stores[0], &stores[1], "second", &mut seen).await;
    assert_goes_on(&stores[1], &stores[0], "first", &mut seen).await;
    assert!(current(&stores[0]).await < beyond(beyond(lost)), "the clock was advanced once");
}

#[tokio::test]
async fn the_first_answer_after_a_loss_has_a_revision_that_no_client_has_seen() {
    // No watch waits, and no bell rings: the call itself makes the connection.
    let process = Process::start();
    let remote = Remote::open(process.connector()).await.unwrap();
    let create = |name: &str| vec![vec![object(name).create()]];
    remote.commit(create("ns/kept")).await.unwrap();
    process.end().await;
    process.copy("first.db", "copy.db");
    process.resume("first.db");
    let lost = remote.commit(create("ns/lost")).await.unwrap().changes[0].revision;
    for call in ["clock", "list", "changes", "commit"] {
        process.end().await;
        process.copy("copy.db", &format!("{call}.db"));
        process.resume(&format!("{call}.db"));
        let epoch = remote.epoch();
        let revision = match call {
            "clock" => remote.clock().await.unwrap().current,
            "list" => remote.list(&all()).await.unwrap().revision,
            "changes" => {
                let bound = crate::engine::Bound { changes: 10, bytes: 1000 };
                let changes = remote.changes(None, lost, bound).await;
                assert!(matches!(changes, Err(Error::Expired { .. })), "{changes:?}");
                remote.clock().await.unwrap().current
            }
            _ => remote.commit(create("ns/later")).await.unwrap().changes[0].revision,
        };
        assert!(revision > lost, "{call}: {revision} after {lost}");
        assert_eq!(remote.epoch(), epoch + 1, "{call}");
    }
}

#[tokio::test]
async fn a_copy_whose_clock_is_ahead_is_noticed_by_its_last_record() {
    let process = Process::start();
    let ours = store(&process.connector()).await;
    let mut seen = ClientRevisions::default();
    write(&ours, "kept", 5, &mut seen).await;
    process.end().await;
    process.copy("first.db", "copy.db");
    process.resume("first.db");
    write(&ours, "lost", 10, &mut seen).await;
    let mut watch = ours.watch(everything(), seen.last()).await.unwrap();
    process.end().await;
    // Another program writes to the copy before it takes the place of the database.
    let theirs = open(&process.path("copy.db"));
    for number in 0..30 {
        theirs.commit(vec![vec![object(&format!("ns/theirs-{number}")).create()]]).await.unwrap();
    }
    theirs.close().await;
    process.resume("copy.db");
    assert_ended(&mut watch).await;
    assert_too_old(&ours, seen.last()).await;
    assert_eq!(ours.list(&all()).await.unwrap().items.len(), 35);
    assert_goes_on(&ours, &ours, "later", &mut seen).await;
}

#[tokio::test]
async fn a_server_that_misses_nothing_is_told_when_another_one_does() {
    let process = Process::start();
    let is_open = Arc::new(AtomicBool::new(true));
    let mut seen = ClientRevisions::default();
    let knowing = store(&process.gated_connector(Arc::clone(&is_open))).await;
    write(&knowing, "kept", 5, &mut seen).await;
    process.end().await;
    process.copy("first.db", "copy.db");
    process.resume("first.db");
    write(&knowing, "lost", 10, &mut seen).await;
    is_open.store(false, Ordering::SeqCst);
    process.end().await;
    process.resume("copy.db");
    // The young server has seen nothing of what was lost, and connects first.
    let young = Arc::new(Remote::open(process.connector()).await.unwrap());
    let young_store = super::store_on(young.clone()).await;
    let mut watch = young_store.watch(everything(), current(&young_store).await).await.unwrap();
    is_open.store(true, Ordering::SeqCst);
    assert!(current(&knowing).await > seen.last());
    assert_ended(&mut watch).await;
    timeout(PATIENCE, until(|| async { young.epoch() == 1 })).await.expect("the loss is counted once");
    assert_goes_on(&young_store, &knowing, "on", &mut seen).await;
    // The connections of both break once more: there is no loss to find.
    let (mut watch, before) =
        (young_store.watch(everything(), seen.last()).await.unwrap(), current(&knowing).await);
    process.end().await;
    process.resume("copy.db");
    write(&knowing, "again", 3, &mut seen).await;
    read(&mut watch, 3, &mut seen).await;
    assert_eq!((young.epoch(), current(&knowing).await.0), (1, before.0 + 3));
}

#[tokio::test]
async fn a_clock_that_was_advanced_while_the_process_was_away_is_not_advanced_again() {
    let process = Process::start();
    let ours = store(&process.connector()).await;
    let mut seen = ClientRevisions::default();
    write(&ours, "kept", 5, &mut seen).await;
    process.end().await;
    process.copy("first.db", "copy.db");
    process.resume("first.db");
    write(&ours, "lost", 10, &mut seen).await;
    let mut watch = ours.watch(everything(), seen.last()).await.unwrap();
    process.end().await;
    // As `orlop restore --advance` does.
    let restored = open(&process.path("copy.db"));
    let advanced = restored.advance(beyond(restored.clock().await.unwrap().current)).await.unwrap();
    restored.close().await;
    process.resume("copy.db");
    assert_ended(&mut watch).await;
    assert_eq!(current(&ours).await, advanced.current);
    assert_goes_on(&ours, &ours, "later", &mut seen).await;
}
