//! Many writers, watchers and readers at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Revision;
use tokio::task::JoinSet;

use super::Factory;
use super::kit::*;
use crate::{Action, Error, Event, ListQuery, Store, Watch, Write};

const WRITERS: u64 = 8;
const WRITES: u64 = 60;
const OBJECTS: u64 = 5;

/// Each writer creates, updates and deletes its own few objects, some of them in one transaction.
async fn write_much(store: Store, writer: u64) -> u64 {
    let mut dice = Dice(writer + 1);
    let mut alive = HashMap::new();
    let mut count = 0;
    for step in 0..WRITES {
        let mut writes: Vec<Write> = Vec::new();
        for _ in 0..=dice.roll(3) {
            let name = format!("n{}/w{writer}-{}", writer % 2, dice.roll(OBJECTS));
            let o = object(&name).label("even", if dice.roll(2) == 0 { "yes" } else { "no" });
            let o = o.data(format!("{writer} {step} {}", writes.len()));
            let is = alive.entry(name).or_insert(false);
            writes.push(match (*is, dice.roll(4)) {
                (false, _) => o.create(),
                (true, 0) => o.remove(),
                (true, _) => o.put(),
            });
            *is = !matches!(writes.last(), Some(Write::Delete { .. }));
        }
        count += writes.len() as u64;
        store.write(writes).await.expect("nobody else writes these objects");
    }
    count
}

/// The changes up to `last`, as a watch returns them.
async fn watch_all(mut watch: Watch, from: Revision, last: Revision) -> Result<Vec<Event>, Error> {
    let mut events: Vec<Event> = Vec::new();
    while events.last().map_or(from, |event| event.change.revision) < last {
        events.extend(watch.next().await?);
    }
    Ok(events)
}

/// A watch of everything has to see every revision, and each change has to follow the previous one of its
/// object.
fn check_complete(events: &[Event], from: Revision, last: Revision) {
    let revisions: Vec<u64> = events.iter().map(|event| event.change.revision.0).collect();
    assert!(revisions.iter().copied().eq(from.0 + 1..=last.0), "from {from}: {revisions:?}");
    let mut heads: HashMap<_, Revision> = HashMap::new();
    for event in events {
        let change = &event.change;
        if let Some(previous) = heads.get(&change.key) {
            assert_eq!(change.previous, *previous, "{}", change.key);
        }
        let head = if change.action == Action::Delete { Revision::ZERO } else { change.revision };
        heads.insert(change.key.clone(), head);
        assert_eq!(version_of(&event.value()), change.revision);
    }
}

/// Starts the writers; each returns the number of revisions that it took.
async fn start_writers(kit: &Kit, running: &Arc<AtomicBool>) -> JoinSet<u64> {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (store, running) = (kit.store.clone(), Arc::clone(running));
        writers.spawn(async move {
            let count = write_much(store, writer).await;
            running.store(false, Ordering::Relaxed);
            count
        });
    }
    writers
}

async fn watch_from_anywhere(kit: &Kit) {
    let start = kit.revision().await;
    let running = Arc::new(AtomicBool::new(true));
    let mut writers = start_writers(kit, &running).await;
    let mut dice = Dice(7);
    let mut watches = Vec::new();
    // Watches start during the writes, at any revision so far and a little ahead.
    while running.load(Ordering::Relaxed) && watches.len() < 60 {
        let now = kit.revision().await;
        let from = Revision(start.0 + dice.roll(now.0 - start.0 + 3));
        watches.push((from, kit.watch(everything(), from).await));
        tokio::task::yield_now().await;
    }
    let mut last = start;
    while let Some(count) = writers.join_next().await {
        last.0 += count.expect("the writer succeeded");
    }
    assert_eq!(kit.revision().await, last);
    let mut watchers = JoinSet::new();
    for (from, watch) in watches {
        watchers.spawn(async move {
            let events = watch_all(watch, from, last).await.expect("the watch goes on");
            check_complete(&events, from, last);
        });
    }
    while let Some(watcher) = watchers.join_next().await {
        watcher.expect("the watcher saw everything");
    }
}

pub(super) async fn watches_from_anywhere_see_every_change_of_concurrent_writers(factory: Factory) {
    watch_from_anywhere(&Kit::new(&factory).await).await;
}

pub(super) async fn slow_watches_with_a_tiny_ring_see_every_change(factory: Factory) {
    let kit = Kit::with(&factory, |options| {
        options.ring_events = 7;
        options.batch_writes = 5;
    })
    .await;
    watch_from_anywhere(&kit).await;
}

pub(super) async fn compaction_under_load_loses_nothing(factory: Factory) {
    let kit = Kit::with(&factory, |options| options.ring_events = 20).await;
    let start = kit.revision().await;
    let running = Arc::new(AtomicBool::new(true));
    let mut writers = start_writers(&kit, &running).await;
    let mut watches = Vec::new();
    while running.load(Ordering::Relaxed) {
        let now = kit.revision().await;
        if now > start && watches.len() < 60 {
            watches.push((now, kit.watch(everything(), now).await));
        }
        let behind = Revision(now.0.saturating_sub(30));
        kit.store.compact(behind).await.expect("it compacts");
        kit.list(&all()).await;
    }
    let mut last = start;
    while let Some(count) = writers.join_next().await {
        last.0 += count.expect("the writer succeeded");
    }
    let mut complete = 0;
    for (from, watch) in watches {
        // Below the mark a watch may be expired, but it must not skip anything.
        match watch_all(watch, from, last).await {
            Ok(events) => {
                check_complete(&events, from, last);
                complete += 1;
            }
            Err(Error::Expired { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let now = kit.watch(everything(), last).await;
    assert!(watch_all(now, last, last).await.is_ok());
    tracing::debug!(complete, "watches that saw everything");
    let items = kit.list(&all()).await.items;
    kit.store.compact(last).await.expect("it compacts");
    assert_eq!(kit.list(&all()).await.items.len(), items.len());
}

pub(super) async fn lists_under_load_are_of_one_moment(factory: Factory) {
    let kit = Kit::new(&factory).await;
    // Two objects that are always written together have to be seen together.
    let pair = |n: u64| [object("ns/a").data(n.to_string()), object("ns/b").data(n.to_string())];
    kit.store.write(pair(0).iter().map(Object::create).collect()).await.expect("both are new");
    let store = kit.store.clone();
    let mut writers = JoinSet::new();
    writers.spawn(async move {
        for n in 1..300 {
            store.write(pair(n).iter().map(Object::put).collect()).await.expect("both are there");
        }
    });
    let mut revisions = Vec::new();
    while writers.try_join_next().is_none() {
        let page = kit.list(&all()).await;
        let data: Vec<String> = page.items.iter().map(|item| data_of(&item.value)).collect();
        assert_eq!(data[0], data[1], "at {}", page.revision);
        assert!(page.items.iter().all(|item| item.revision <= page.revision));
        let again = kit.list(&ListQuery { at: Some(page.revision), ..all() }).await;
        let then: Vec<String> = again.items.iter().map(|item| data_of(&item.value)).collect();
        assert_eq!(then, data, "the same as of {}", page.revision);
        revisions.push(page.revision);
    }
    assert!(revisions.is_sorted());
}
