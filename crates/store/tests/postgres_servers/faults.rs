//! PostgreSQL that crashes, stops, hangs or refuses to write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use model::{ObjectKey, Revision};
use pgtest::{PgServer, Stop};
use store::{Error, Store};
use tokio::task::JoinSet;

use crate::kit::*;

/// Writes until it has to stop; returns the acknowledged writes.
async fn write_on(store: Store, writer: usize, running: Arc<AtomicBool>) -> BTreeMap<Revision, ObjectKey> {
    let mut acknowledged = BTreeMap::new();
    let mut number = 0;
    while running.load(Ordering::Relaxed) {
        // A write that failed may have happened all the same, so each gets a name of its own.
        let name = format!("w{writer}-{number}");
        number += 1;
        match store.write(vec![create(&name, "1")]).await {
            Ok(written) => {
                acknowledged.insert(written[0].revision, key(&name));
            }
            Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    acknowledged
}

async fn restart(server: PgServer, how: Stop) -> PgServer {
    let restarting = tokio::task::spawn_blocking(move || {
        let mut server = server;
        server.restart(how).expect("the server starts again");
        server
    });
    restarting.await.expect("the server starts again")
}

#[test]
fn every_acknowledged_write_survives_a_crash_of_postgres_and_watches_go_on() {
    run(async {
        let mut server = PgServer::start().unwrap();
        let url = server.create_database().unwrap();
        let stores = [store(&url, |_| {}).await, store(&url, |_| {}).await];
        let from = revision(&stores[0]).await;
        let mut watches = [watch(&stores[0], from).await, watch(&stores[1], from).await];
        let running = Arc::new(AtomicBool::new(true));
        let mut writers = JoinSet::new();
        for writer in 0..6 {
            writers.spawn(write_on(stores[writer % 2].clone(), writer, Arc::clone(&running)));
        }
        for how in [Stop::Immediate, Stop::Kill, Stop::Immediate] {
            // Load, before each crash and after the last.
            let before = revision(&stores[0]).await;
            until(async || revision(&stores[1]).await.0 > before.0 + 100).await;
            server = restart(server, how).await;
            until(async || stores[0].clock().await.is_ok() && stores[1].clock().await.is_ok()).await;
        }
        let before = revision(&stores[0]).await;
        until(async || revision(&stores[0]).await.0 > before.0 + 100).await;
        running.store(false, Ordering::Relaxed);
        let mut acknowledged = BTreeMap::new();
        while let Some(writer) = writers.join_next().await {
            for (revision, key) in writer.unwrap() {
                assert_eq!(acknowledged.insert(revision, key), None, "revision {revision} was given twice");
            }
        }
        let last = revision(&stores[0]).await;
        let items = stores[0].list(&all()).await.unwrap().items;
        let there: BTreeMap<Revision, ObjectKey> =
            items.into_iter().map(|item| (item.revision, item.key)).collect();
        for (revision, key) in &acknowledged {
            assert_eq!(there.get(revision), Some(key), "an acknowledged write is lost");
        }
        for watch in &mut watches {
            let events = events_through(watch, from, last).await;
            assert_complete(&events, from, last);
            let seen: BTreeMap<Revision, ObjectKey> =
                events.iter().map(|event| (event.change.revision, event.change.key.clone())).collect();
            assert_eq!(seen, there, "the watch saw another history than the one that is there");
        }
    });
}

#[test]
fn a_database_that_is_away_is_unavailable_at_once_and_comes_back() {
    run(async {
        let mut server = PgServer::start().unwrap();
        let url = server.create_database().unwrap();
        let store = store(&url, |_| {}).await;
        store.write(vec![create("before", "1")]).await.unwrap();
        server.stop(Stop::Fast).unwrap();
        for _ in 0..20 {
            assert!(matches!(store.get(&key("before"), None).await, Err(Error::Unavailable { .. })));
            let error = store.write(vec![create("meanwhile", "1")]).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        }
        server.resume().unwrap();
        until(async || store.write(vec![create("after", "1")]).await.is_ok()).await;
        assert!(!store.commits_fail());
        until(async || store.get(&key("before"), None).await.is_ok_and(|found| found.is_some())).await;
        let names: Vec<_> =
            store.list(&all()).await.unwrap().items.into_iter().map(|item| item.key.name).collect();
        assert_eq!(names, ["after", "before"]);
    });
}

#[test]
fn a_read_only_database_is_unavailable_for_writes_and_recovers() {
    run(async {
        let server = PgServer::start().unwrap();
        let url = server.create_database().unwrap();
        let store = store(&url, |_| {}).await;
        store.write(vec![create("before", "1")]).await.unwrap();
        let admin = Admin::connect(&url).await;
        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on").await;
        admin.execute("SELECT pg_reload_conf()").await;
        // Another name each time: an existing object is refused as such, without a write.
        let attempt = AtomicUsize::new(0);
        let refused = async || {
            let name = format!("meanwhile-{}", attempt.fetch_add(1, Ordering::Relaxed));
            match store.write(vec![create(&name, "1")]).await {
                Err(Error::Unavailable { reason }) => reason.contains("read-only"),
                // The reload takes a moment.
                Ok(_) => false,
                Err(error) => panic!("{error}"),
            }
        };
        until(refused).await;
        assert!(store.commits_fail(), "readiness can see it");
        assert!(store.get(&key("before"), None).await.unwrap().is_some(), "reads go on");
        // A server can also start on it, as the tables are there.
        let other = crate::kit::store(&url, |_| {}).await;
        assert!(other.get(&key("before"), None).await.unwrap().is_some());
        admin.execute("ALTER SYSTEM RESET default_transaction_read_only").await;
        admin.execute("SELECT pg_reload_conf()").await;
        until(async || store.write(vec![create("after", "1")]).await.is_ok()).await;
        until(async || other.write(vec![create("after-too", "1")]).await.is_ok()).await;
    });
}

#[test]
fn sessions_that_are_killed_are_made_again() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let store = store(&url, |_| {}).await;
        let admin = Admin::connect(&url).await;
        for round in 0..5 {
            admin
                .execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
                     WHERE datname = current_database() AND pid <> pg_backend_pid()",
                )
                .await;
            // They were idle, so no caller has to notice.
            let name = format!("object-{round}");
            store.write(vec![create(&name, "1")]).await.unwrap();
            assert!(store.get(&key(&name), None).await.unwrap().is_some());
        }
    });
}

#[test]
fn a_commit_whose_session_is_lost_has_an_unknown_outcome_and_a_refused_one_has_not() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let store = store(&url, |_| {}).await;
        let admin = Admin::connect(&url).await;
        store.write(vec![create("before", "1")]).await.unwrap();
        // The trip that writes waits for a table, and its session ends meanwhile.
        let other = Admin::connect(&url).await;
        other.execute("BEGIN; LOCK TABLE orlop.counts IN ACCESS EXCLUSIVE MODE").await;
        let mut writing = JoinSet::new();
        let writer = store.clone();
        writing.spawn(async move { writer.write(vec![create("cut-off", "1")]).await });
        let waits = "FROM pg_stat_activity WHERE datname = current_database()
                     AND application_name = 'orlop writes' AND wait_event_type = 'Lock'";
        until(async || admin.number(&format!("SELECT count(*) {waits}")).await == 1).await;
        admin.execute(&format!("SELECT pg_terminate_backend(pid, 5000) {waits}")).await;
        let error = writing.join_next().await.unwrap().unwrap().unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
        other.execute("ROLLBACK").await;
        // A statement that the database refuses has not happened, and that is known.
        admin.execute("ALTER TABLE orlop.changes ADD CONSTRAINT no CHECK (name <> 'refused')").await;
        let error = store.write(vec![create("refused", "1")]).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        store.write(vec![create("after", "1")]).await.unwrap();
        let names: Vec<_> =
            store.list(&all()).await.unwrap().items.into_iter().map(|item| item.key.name).collect();
        assert_eq!(names, ["after", "before"]);
    });
}

#[test]
fn a_commit_waits_for_its_turn_and_reads_do_not() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let store = store(&url, |_| {}).await;
        store.write(vec![create("before", "1")]).await.unwrap();
        let other = Admin::connect(&url).await;
        other.execute("BEGIN; SELECT pg_advisory_xact_lock(1869769840, 2)").await;
        let mut writing = JoinSet::new();
        let writer = store.clone();
        writing.spawn(async move { writer.write(vec![create("waits", "1")]).await });
        let admin = Admin::connect(&url).await;
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        until(async || admin.number(waiting).await == 1).await;
        assert!(store.get(&key("before"), None).await.unwrap().is_some());
        assert_eq!(store.list(&all()).await.unwrap().items.len(), 1);
        other.execute("COMMIT").await;
        writing.join_next().await.unwrap().unwrap().unwrap();
    });
}

#[test]
fn a_text_that_postgres_cannot_store_is_refused_alone() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let store = store(&url, |_| {}).await;
        let mut writing = JoinSet::new();
        for name in ["good", "bad\0name", &"long".repeat(200), "better"] {
            let (store, write) = (store.clone(), create(name, "1"));
            writing.spawn(async move { store.write(vec![write]).await.is_ok() });
        }
        let mut good = 0;
        while let Some(written) = writing.join_next().await {
            good += usize::from(written.unwrap());
        }
        assert_eq!(good, 2);
        assert!(matches!(store.get(&key("bad\0name"), None).await, Ok(None)));
        // Values of labels and fields have no such limits: they are found all the same.
        for value in ["with\0zero".to_owned(), "x".repeat(5000), format!("{}y", "x".repeat(5000))] {
            store.write(vec![create(&format!("v{}", value.len()), &value)]).await.unwrap();
        }
        for value in ["with\0zero".to_owned(), "x".repeat(5000), format!("{}y", "x".repeat(5000))] {
            let mut query = all();
            query.selector.requirements.push(model::selector::Requirement {
                target: model::selector::Target::Label,
                key: "data".to_owned(),
                test: model::selector::Test::In(vec![value.clone()]),
            });
            let page = store.list(&query).await.unwrap();
            assert_eq!(page.items.len(), 1, "{}", value.len());
            assert_eq!(page.items[0].key, key(&format!("v{}", value.len())));
        }
    });
}
