//! Watches of everything in a scope.

use std::time::Duration;

use bytes::Bytes;
use model::Revision;
use tokio::task::JoinSet;

use super::Factory;
use super::kit::*;
use crate::{Error, WatchScope};

pub(super) async fn a_watch_gives_every_later_change_once_and_in_order(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let (a, b) = (object("ns/a"), object("ns/b"));
    kit.write(a.clone().data("before").create()).await;
    let mut watch = kit.watch(everything(), kit.revision().await).await;
    kit.write(a.clone().data("one").put()).await;
    kit.write(b.clone().data("two").create()).await;
    kit.write(a.clone().data("one").remove()).await;
    kit.write(a.clone().data("three").create()).await;
    let seen = next_seen(&mut watch, 4).await;
    assert_eq!(seen, [modified("a", "one"), added("b", "two"), deleted("a", "one"), added("a", "three")]);
    kit.write(b.clone().data("four").put()).await;
    assert_eq!(next_seen(&mut watch, 1).await, [modified("b", "four")]);
}

pub(super) async fn a_watch_from_an_older_revision_begins_there(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    let start = kit.revision().await;
    let mut revisions = vec![start, kit.write(a.clone().data("0").create()).await.revision];
    for n in 1..5 {
        kit.write(object(&format!("ns/of-another-kind-{n}")).of(&model::Resource::new("", "pods")).create())
            .await;
        revisions.push(kit.write(a.clone().data(n.to_string()).put()).await.revision);
    }
    for (passed, from) in revisions.into_iter().enumerate() {
        let mut watch = kit.watch(everything(), from).await;
        if passed == 5 {
            kit.write(a.clone().data("5").put()).await;
        }
        let seen = next_seen(&mut watch, if passed == 5 { 1 } else { 5 - passed }).await;
        let first = if passed == 0 { added("a", "0") } else { modified("a", &passed.to_string()) };
        assert_eq!(seen[0], first, "from {from}");
    }
}

pub(super) async fn a_watch_is_confined_to_its_scope(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let scope = |namespace: Option<&str>, name: Option<&str>| WatchScope {
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        ..everything()
    };
    let from = kit.revision().await;
    let mut watches = [
        (kit.watch(scope(Some("m"), None), from).await, 3),
        (kit.watch(scope(Some("m"), Some("a")), from).await, 2),
        (kit.watch(scope(None, Some("a")), from).await, 3),
        (kit.watch(scope(None, None), from).await, 5),
    ];
    for path in ["n/a", "m/a", "m/b", "n/b"] {
        kit.write(object(path).data("1").create()).await;
    }
    let pods = model::Resource::new("", "pods");
    kit.write(object("m/a").of(&pods).create()).await;
    kit.write(object("m/a").data("2").put()).await;
    for (watch, count) in &mut watches {
        assert_eq!(next_seen(watch, *count).await.len(), *count);
    }
    let end = object("m/a").data("end");
    kit.write(end.put()).await;
    for (watch, _) in &mut watches {
        assert_eq!(next_seen(watch, 1).await, [modified("a", "end")]);
    }
}

pub(super) async fn a_delete_carries_the_last_state_and_its_own_revision(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a").data("last");
    let created = kit.write(a.create()).await.revision;
    let mut live = kit.watch(everything(), created).await;
    let gone = kit.write(a.remove()).await;
    let mut late = kit.watch(everything(), created).await;
    for watch in [&mut live, &mut late] {
        let event = next(watch, 1).await.remove(0);
        assert_eq!(seen(&event), deleted("a", "last"));
        assert_eq!((event.change.revision, event.change.previous), (gone.revision, created));
        assert_eq!(event.value(), gone.value);
    }
}

pub(super) async fn a_watch_ahead_of_the_clock_waits_for_it(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let now = kit.revision().await;
    let ahead = Revision(now.0 + 2);
    let mut watch = kit.watch(everything(), ahead).await;
    assert_eq!(watch.position(), ahead);
    for name in ["a", "b", "c"] {
        kit.write(object(&format!("ns/{name}")).create()).await;
    }
    let events = next(&mut watch, 1).await;
    assert_eq!(seen(&events[0]), added("c", ""));
    assert_eq!(events[0].change.revision, ahead.next());
}

pub(super) async fn one_write_wakes_many_watches(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let from = kit.revision().await;
    let mut waiting = JoinSet::new();
    for _ in 0..200 {
        let mut watch = kit.watch(everything(), from).await;
        waiting.spawn(async move { next_seen(&mut watch, 1).await });
    }
    kit.write(object("ns/a").create()).await;
    for seen in waiting.join_all().await {
        assert_eq!(seen, [added("a", "")]);
    }
}

pub(super) async fn the_position_of_an_idle_watch_moves_on(factory: Factory) {
    let kit = Kit::with(&factory, |options| options.ring_events = 4).await;
    let mut idle = kit.watch(watching(vec![label_is("never", "there")]), kit.revision().await).await;
    let mut elsewhere = everything();
    elsewhere.resource = model::Resource::new("", "pods");
    let mut other = kit.watch(elsewhere, kit.revision().await).await;
    let mut last = Revision::ZERO;
    for n in 0..20 {
        last = kit.write(object(&format!("ns/o{n}")).create()).await.revision;
    }
    // Also while a caller waits for the next event.
    for watch in [&mut idle, &mut other] {
        let waited = tokio::time::timeout(Duration::from_millis(1), watch.next()).await;
        assert!(waited.is_err(), "there is nothing for it");
        until(|| std::future::ready(watch.position() == last)).await;
    }
}

pub(super) async fn the_position_never_passes_an_event_that_was_not_given_out(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let from = kit.revision().await;
    let mut watch = kit.watch(watching(vec![label_is("k", "v")]), from).await;
    let mut other = kit.watch(everything(), from).await;
    kit.write(object("ns/a").create()).await;
    let wanted = kit.write(object("ns/b").label("k", "v").create()).await.revision;
    kit.write(object("ns/c").create()).await;
    // The other watch has seen them all, so the hub has them all.
    next(&mut other, 3).await;
    assert_eq!(watch.position().next(), wanted);
    assert_eq!(next_seen(&mut watch, 1).await, [added("b", "")]);
    assert!(watch.position() >= wanted);
}

pub(super) async fn a_dropped_next_loses_nothing(factory: Factory) {
    let kit = Kit::with(&factory, |options| options.ring_events = 8).await;
    let mut watch = kit.watch(watching(vec![label_is("k", "v")]), kit.revision().await).await;
    let store = kit.store.clone();
    let mut writers = JoinSet::new();
    writers.spawn(async move {
        for n in 0..200 {
            // Half of the updates take the object out of the selection, so that next has to load its last version.
            let a = object("ns/a").data(n.to_string()).label("k", if n % 2 == 0 { "v" } else { "w" });
            let write = if n == 0 { a.create() } else { a.put() };
            store.write(vec![write]).await.expect("the write succeeds");
        }
    });
    let mut seen_all = Vec::new();
    let mut polls = 0_u32;
    while seen_all.len() < 200 {
        polls += 1;
        // Dropped at whichever point it waits. The limit grows: a database may take longer than any fixed one.
        let limit = Duration::from_micros(u64::from(polls % 7) * u64::from(50 + polls));
        if let Ok(events) = tokio::time::timeout(limit, watch.next()).await {
            seen_all.extend(events.expect("the watch goes on").iter().map(seen));
        }
    }
    for (n, event) in seen_all.iter().enumerate() {
        let expected =
            if n % 2 == 0 { added("a", &n.to_string()) } else { deleted("a", &(n - 1).to_string()) };
        assert_eq!(*event, expected);
    }
    writers.join_all().await;
}

pub(super) async fn a_slow_watch_reads_on_from_the_log(factory: Factory) {
    let kit = Kit::with(&factory, |options| options.ring_events = 3).await;
    let mut slow = kit.watch(everything(), kit.revision().await).await;
    kit.write(object("ns/a").data("0").create()).await;
    assert_eq!(next_seen(&mut slow, 1).await, [added("a", "0")]);
    for n in 1..=1200 {
        kit.write(object("ns/a").data(n.to_string()).put()).await;
    }
    let seen = next_seen(&mut slow, 1200).await;
    let expected: Vec<EventSummary> = (1..=1200).map(|n| modified("a", &n.to_string())).collect();
    assert_eq!(seen, expected);
    kit.write(object("ns/a").data("live").put()).await;
    assert_eq!(next_seen(&mut slow, 1).await, [modified("a", "live")]);
}

pub(super) async fn a_frame_is_encoded_once(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let from = kit.revision().await;
    let mut watches = [kit.watch(everything(), from).await, kit.watch(everything(), from).await];
    kit.write(object("ns/a").create()).await;
    let mut encoded = 0;
    for watch in &mut watches {
        let event = next(watch, 1).await.remove(0);
        for slot in [1, 2, 1] {
            let frame = event.change.frame(slot, |change| {
                encoded += 1;
                Bytes::from(format!("{} in {slot}", change.key.name))
            });
            assert_eq!(frame, format!("a in {slot}"));
        }
    }
    assert_eq!(encoded, 2, "once per slot, for both watches");
}

pub(super) async fn closing_ends_watches(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let mut watch = kit.watch(everything(), kit.revision().await).await;
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { watch.next().await.map(|_| ()) });
    kit.store.close().await;
    for ended in waiting.join_all().await {
        assert!(matches!(ended, Err(Error::Unavailable { .. })));
    }
}
