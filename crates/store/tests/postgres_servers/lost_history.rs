//! A PostgreSQL that lost its last commits: restored from a copy, or promoted from a replica that was behind.

use std::collections::BTreeMap;

use model::{ObjectKey, Revision};
use pgtest::{PgServer, Stop};
use store::{Error, ListQuery, Store, Watch};

use crate::kit::*;

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

/// Writes `count` objects.
async fn write(store: &Store, of: &str, count: usize, seen: &mut ClientRevisions) {
    for number in 0..count {
        let name = format!("{of}-{number}");
        let written = loop {
            match store.write(vec![create(&name, "1")]).await {
                Ok(written) => break written,
                Err(Error::Unavailable { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        seen.note(written[0].revision, key(&name));
    }
}

async fn read_through(watch: &mut Watch, from: Revision, last: Revision, seen: &mut ClientRevisions) {
    for event in events_through(watch, from, last).await {
        seen.note(event.change.revision, event.change.key.clone());
    }
}

/// The watch expires once, with no other event.
async fn assert_ended(watch: &mut Watch) {
    loop {
        match watch.next().await {
            Err(Error::Expired { .. }) => return,
            Err(Error::Unavailable { .. }) => tokio::task::yield_now().await,
            Ok(events) => panic!("an event of a history that the watch does not follow: {events:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A revision from before the loss is too old for every kind of request.
async fn assert_too_old(store: &Store, requested: Revision) {
    let at = Some(requested);
    assert!(matches!(store.get(&key("any"), at).await, Err(Error::Expired { .. })));
    assert!(matches!(store.list(&ListQuery { at, ..all() }).await, Err(Error::Expired { .. })));
    let scope = store::WatchScope {
        resource: configmaps(),
        namespace: None,
        name: None,
        selector: model::Selector::default(),
    };
    assert!(matches!(store.watch(scope, requested).await.err(), Some(Error::Expired { .. })));
}

/// Relists and watches: the events that follow are complete.
async fn assert_goes_on(store: &Store, writer: &Store, of: &str, seen: &mut ClientRevisions) {
    let page = store.list(&all()).await.unwrap();
    assert!(page.revision >= seen.last(), "{} after {}", page.revision, seen.last());
    let mut watch = watch(store, page.revision).await;
    write(writer, of, 3, seen).await;
    let last = seen.last();
    read_through(&mut watch, page.revision, last, seen).await;
}

async fn blocking(
    server: PgServer,
    work: impl FnOnce(&mut PgServer) -> Result<(), pgtest::Error> + Send + 'static,
) -> PgServer {
    let working = tokio::task::spawn_blocking(move || {
        let mut server = server;
        work(&mut server).map(|()| server)
    });
    working.await.unwrap().expect("the server does it")
}

#[test]
fn an_older_copy_in_place_of_the_database_ends_watches_and_reuses_no_revision() {
    run(async {
        let mut server = PgServer::start().unwrap();
        let url = server.create_database().unwrap();
        let stores = [store(&url, |_| {}).await, store(&url, |_| {}).await];
        let mut seen = ClientRevisions::default();
        write(&stores[0], "kept", 5, &mut seen).await;
        let copy = server.fork().unwrap();
        let from = seen.last();
        let mut watches = [watch(&stores[0], from).await, watch(&stores[1], from).await];
        // The second has seen more than the first when the database goes back.
        write(&stores[1], "lost", 30, &mut seen).await;
        for watch in &mut watches {
            read_through(watch, from, seen.last(), &mut seen).await;
        }
        let lost = seen.last();
        server = blocking(server, move |server| server.become_copy(copy)).await;
        for watch in &mut watches {
            assert_ended(watch).await;
        }
        for store in &stores {
            assert_too_old(store, from).await;
            assert_too_old(store, lost).await;
            assert!(revision(store).await > lost);
            assert_eq!(store.list(&all()).await.unwrap().items.len(), 5);
        }
        assert_goes_on(&stores[0], &stores[1], "second", &mut seen).await;
        assert_goes_on(&stores[1], &stores[0], "first", &mut seen).await;
        drop(server);
    });
}

#[test]
fn a_copy_whose_clock_is_ahead_is_noticed_by_its_last_record() {
    run(async {
        let mut server = PgServer::start().unwrap();
        let url = server.create_database().unwrap();
        let ours = store(&url, |_| {}).await;
        let mut seen = ClientRevisions::default();
        write(&ours, "kept", 5, &mut seen).await;
        let copy = server.fork().unwrap();
        let from = seen.last();
        let mut watch = watch(&ours, from).await;
        write(&ours, "lost", 10, &mut seen).await;
        read_through(&mut watch, from, seen.last(), &mut seen).await;
        // Another program writes to the copy before it takes the place of the database.
        let elsewhere = url.replace(&server.port().to_string(), &copy.port().to_string());
        let theirs = store(&elsewhere, |_| {}).await;
        write(&theirs, "theirs", 30, &mut ClientRevisions::default()).await;
        theirs.close().await;
        server = blocking(server, move |server| server.become_copy(copy)).await;
        assert_ended(&mut watch).await;
        assert_too_old(&ours, seen.last()).await;
        assert_eq!(ours.list(&all()).await.unwrap().items.len(), 35);
        assert_goes_on(&ours, &ours, "later", &mut seen).await;
        drop(server);
    });
}

#[test]
fn a_promoted_replica_that_lost_nothing_is_a_new_history_all_the_same() {
    run(async {
        let mut server = PgServer::start().unwrap();
        let url = server.create_database().unwrap();
        let replica = server.replica().unwrap();
        let hosts = format!("127.0.0.1:{},127.0.0.1:{}", server.port(), replica.port());
        let both = url.replace(&format!("127.0.0.1:{}", server.port()), &hosts);
        let stores = [store(&both, |_| {}).await, store(&both, |_| {}).await];
        let mut seen = ClientRevisions::default();
        write(&stores[0], "kept", 5, &mut seen).await;
        let last = seen.last();
        let mut watch = watch(&stores[1], last).await;
        let follower = url.replace(&server.port().to_string(), &replica.port().to_string());
        let follower = Admin::connect(&follower).await;
        let clock = i64::try_from(last.0).unwrap();
        until(async || follower.number("SELECT revision FROM orlop.clock").await == clock).await;
        server.stop(Stop::Kill).unwrap();
        let replica = blocking(replica, |replica| replica.promote()).await;
        assert_ended(&mut watch).await;
        assert_eq!(stores[0].list(&all()).await.unwrap().items.len(), 5);
        assert_goes_on(&stores[0], &stores[1], "second", &mut seen).await;
        // A server that starts only now finds the loss already handled.
        let late = store(&both, |_| {}).await;
        let now = revision(&late).await;
        assert_goes_on(&late, &stores[0], "late", &mut seen).await;
        assert!(revision(&late).await.0 - now.0 < 10, "the clock was advanced once");
        // The former primary comes back, and the promoted one is restarted: no session goes back to the
        // former.
        server = blocking(server, |server| server.resume()).await;
        let replica = blocking(replica, |replica| replica.stop(Stop::Immediate)).await;
        let refused = async || match stores[0].clock().await {
            Err(Error::Unavailable { reason }) => reason.contains("former primary"),
            _ => false,
        };
        until(refused).await;
        let _replica = blocking(replica, PgServer::resume).await;
        for store in &stores {
            until(async || store.clock().await.is_ok()).await;
        }
        assert_goes_on(&stores[0], &stores[1], "third", &mut seen).await;
        assert!(revision(&late).await.0 - now.0 < 20, "a restart loses nothing");
        drop(server);
    });
}

#[test]
fn tables_that_are_restored_below_open_sessions_are_noticed_by_reads_and_commits() {
    run(async {
        for reads in [true, false] {
            let url = SERVER.create_database().unwrap();
            let deaf = |options: &mut store::PostgresOptions| {
                options.listen = false;
                options.poll = std::time::Duration::from_secs(3600);
            };
            let store = store(&url, deaf).await;
            let mut seen = ClientRevisions::default();
            write(&store, "kept", 5, &mut seen).await;
            let kept = seen.last();
            write(&store, "lost", 10, &mut seen).await;
            let lost = seen.last();
            let mut watch = watch(&store, lost).await;
            let back = format!(
                "BEGIN;
                 DELETE FROM orlop.heads WHERE revision > {kept};
                 DELETE FROM orlop.changes WHERE revision > {kept};
                 UPDATE orlop.clock SET revision = {kept};
                 COMMIT"
            );
            Admin::connect(&url).await.execute(&back).await;
            if reads {
                assert!(store.list(&all()).await.unwrap().revision > lost);
            }
            write(&store, "later", 3, &mut seen).await;
            assert_ended(&mut watch).await;
            assert_too_old(&store, kept).await;
            assert_goes_on(&store, &store, "on", &mut seen).await;
        }
    });
}
