//! Several servers on one database: each sees the commits of the others, completely, in order, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::Revision;
use store::{Error, PostgresOptions, Precondition, Store};
use tokio::task::JoinSet;

use crate::kit::*;

/// A poll that comes too late for every test.
const NEVER: Duration = Duration::from_secs(3600);

/// Each writer creates, changes and deletes objects of its own; returns the number of revisions that it took.
async fn write_much(store: Store, writer: String, rounds: u64) -> u64 {
    for round in 0..rounds {
        let name = format!("{writer}-{round}");
        store.write(vec![create(&name, "1")]).await.expect("it is new");
        store.write(vec![update(&name, Precondition::default(), "2")]).await.expect("it is there");
        if round % 2 == 0 {
            store.write(vec![delete(&name)]).await.expect("it is there");
        }
    }
    rounds * 2 + rounds.div_ceil(2)
}

/// A number of servers, each with writers and watchers; all watchers have to see all changes.
async fn all_see_all(servers: usize, change: impl Fn(&mut PostgresOptions), disturb: impl AsyncFn(&str)) {
    const WRITERS: usize = 3;
    const ROUNDS: u64 = 20;
    let url = SERVER.create_database().unwrap();
    let mut stores = Vec::new();
    for _ in 0..servers {
        stores.push(store(&url, &change).await);
    }
    let from = revision(&stores[0]).await;
    let mut watches = Vec::new();
    for store in &stores {
        watches.push(watch(store, from).await);
    }
    let mut writers = JoinSet::new();
    for (place, store) in stores.iter().enumerate() {
        for writer in 0..WRITERS {
            writers.spawn(write_much(store.clone(), format!("s{place}-w{writer}"), ROUNDS));
        }
    }
    let mut last = from;
    while let Some(count) = writers.join_next().await {
        last.0 += count.expect("the writer succeeded");
        disturb(&url).await;
    }
    for watch in &mut watches {
        assert_complete(&events_through(watch, from, last).await, from, last);
    }
    for store in &stores {
        assert_eq!(revision(store).await, last);
        store.close().await;
    }
}

#[test]
fn two_servers_see_each_others_commits() {
    run(all_see_all(2, |options| options.poll = NEVER, async |_| {}));
}

#[test]
fn three_servers_see_each_others_commits() {
    run(all_see_all(3, |_| {}, async |_| {}));
}

#[test]
fn three_servers_see_each_others_commits_though_every_notification_is_lost() {
    let deaf = |options: &mut PostgresOptions| {
        options.listen = false;
        options.poll = Duration::from_millis(50);
    };
    run(all_see_all(3, deaf, async |_| {}));
}

#[test]
fn servers_see_each_others_commits_though_the_sessions_that_listen_are_killed() {
    run(all_see_all(
        2,
        |_| {},
        async |url| {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = 'orlop listens'";
            Admin::connect(url).await.execute(kill).await;
        },
    ));
}

#[test]
fn a_session_that_listens_is_made_again() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let (here, there) = (store(&url, |_| {}).await, store(&url, |options| options.poll = NEVER).await);
        let admin = Admin::connect(&url).await;
        let listening = "SELECT count(*) FROM pg_stat_activity
                         WHERE datname = current_database() AND application_name = 'orlop listens'
                           AND query LIKE 'SELECT revision%'";
        until(async || admin.number(listening).await == 2).await;
        let from = revision(&here).await;
        let mut watch = watch(&there, from).await;
        admin
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'orlop listens'",
            )
            .await;
        here.write(vec![create("in-between", "1")]).await.unwrap();
        // The poll finds the commits that were missed meanwhile, notifications announce the later ones.
        let last = Revision(from.0 + 1);
        assert_complete(&events_through(&mut watch, from, last).await, from, last);
        here.write(vec![create("afterwards", "1")]).await.unwrap();
        let end = Revision(last.0 + 1);
        assert_complete(&events_through(&mut watch, last, end).await, last, end);
    });
}

#[test]
fn a_commit_finds_earlier_commits_of_other_servers() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let deaf = |options: &mut PostgresOptions| {
            options.listen = false;
            options.poll = NEVER;
        };
        let (here, there) = (store(&url, deaf).await, store(&url, deaf).await);
        let from = revision(&there).await;
        let mut watch = watch(&there, from).await;
        here.write(vec![create("theirs", "1")]).await.unwrap();
        there.write(vec![create("ours", "1")]).await.unwrap();
        let last = Revision(from.0 + 2);
        let events = events_through(&mut watch, from, last).await;
        assert_complete(&events, from, last);
        assert_eq!(events[0].change.key, key("theirs"));
        // Also if its own commit changes nothing.
        here.write(vec![create("theirs-too", "1")]).await.unwrap();
        assert!(matches!(there.write(vec![create("ours", "1")]).await, Err(Error::AlreadyExists { .. })));
        let end = Revision(last.0 + 1);
        assert_complete(&events_through(&mut watch, last, end).await, last, end);
    });
}

#[test]
fn updates_of_one_object_by_two_servers_lose_nothing() {
    run(async {
        const EACH: u64 = 25;
        let url = SERVER.create_database().unwrap();
        let stores = [store(&url, |_| {}).await, store(&url, |_| {}).await];
        stores[0].write(vec![create("counter", "0")]).await.unwrap();
        let mut writers = JoinSet::new();
        for store in stores.iter().cloned().chain(stores.iter().cloned()) {
            writers.spawn(async move {
                let mut done = 0;
                while done < EACH {
                    let head = store.get(&key("counter"), None).await.unwrap().unwrap();
                    let object: serde_json::Value = serde_json::from_slice(&head.value).unwrap();
                    let count: u64 = object["data"].as_str().unwrap().parse().unwrap();
                    let expect = Precondition { revision: Some(head.revision), uid: None };
                    match store.write(vec![update("counter", expect, &(count + 1).to_string())]).await {
                        Ok(_) => done += 1,
                        Err(Error::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        while let Some(writer) = writers.join_next().await {
            writer.unwrap();
        }
        let head = stores[1].get(&key("counter"), None).await.unwrap().unwrap();
        let object: serde_json::Value = serde_json::from_slice(&head.value).unwrap();
        assert_eq!(object["data"], (4 * EACH).to_string());
    });
}

#[test]
fn one_server_compacts_while_others_write_and_watch() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let stores = [store(&url, |_| {}).await, store(&url, |_| {}).await];
        let from = revision(&stores[0]).await;
        let mut watch = watch(&stores[1], from).await;
        let running = Arc::new(AtomicBool::new(true));
        let mut compactors = JoinSet::new();
        for store in stores.clone() {
            let running = Arc::clone(&running);
            compactors.spawn(async move {
                while running.load(Ordering::Relaxed) {
                    let now = revision(&store).await;
                    store.compact(Revision(now.0.saturating_sub(200))).await.unwrap();
                }
            });
        }
        let mut writers = JoinSet::new();
        for (place, store) in stores.iter().enumerate() {
            writers.spawn(write_much(store.clone(), format!("s{place}"), 60));
        }
        let mut last = from;
        while let Some(count) = writers.join_next().await {
            last.0 += count.unwrap();
        }
        running.store(false, Ordering::Relaxed);
        while let Some(compactor) = compactors.join_next().await {
            compactor.unwrap();
        }
        assert_complete(&events_through(&mut watch, from, last).await, from, last);
        stores[0].compact(last).await.unwrap();
        let items = stores[1].list(&all()).await.unwrap().items;
        assert_eq!(items.len(), 2 * 30);
        // Only the heads are left of the log.
        let admin = Admin::connect(&url).await;
        assert_eq!(admin.number("SELECT count(*) FROM orlop.changes").await, 60);
        assert_eq!(admin.number("SELECT count(*) FROM orlop.history").await, 0);
    });
}
