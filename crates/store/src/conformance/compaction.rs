//! Compaction: removed history, kept history, and the errors that readers get.

use std::time::Duration;

use model::Revision;

use super::Factory;
use super::kit::*;
use crate::{Error, ListQuery};

fn is_expired<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Expired { .. }))
}

pub(super) async fn a_watch_from_before_the_mark_is_expired(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let created = kit.write(object("ns/a").create()).await.revision;
    let gone = kit.write(object("ns/a").remove()).await.revision;
    kit.store.compact(gone).await.expect("it compacts");
    let watch = kit.store.watch(everything(), created).await;
    assert!(is_expired(watch), "the delete would never be seen");
    let mut watch = kit.watch(everything(), gone).await;
    kit.write(object("ns/b").create()).await;
    assert_eq!(next_seen(&mut watch, 1).await, [added("b", "")]);
}

pub(super) async fn a_running_watch_that_falls_behind_the_mark_is_expired(factory: Factory) {
    let kit = Kit::with(&factory, |options| options.ring_events = 2).await;
    let mut slow = kit.watch(everything(), kit.revision().await).await;
    let mut quick = kit.watch(everything(), kit.revision().await).await;
    for n in 0..10 {
        kit.write(object(&format!("ns/o{n}")).create()).await;
    }
    next(&mut quick, 10).await;
    kit.store.compact(kit.revision().await).await.expect("it compacts");
    assert!(is_expired(slow.next().await));
    kit.write(object("ns/later").create()).await;
    assert_eq!(next_seen(&mut quick, 1).await, [added("later", "")]);
}

pub(super) async fn history_is_counted_in_bytes_until_it_is_compacted(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let history = async || kit.fixture.engine.history_bytes().await.expect("it is counted");
    let large = |name: &str| object(&format!("ns/{name}")).label("k", "v").data("x".repeat(10_000));
    kit.write(large("a").create()).await;
    kit.write(large("b").create()).await;
    assert_eq!(history().await, 0, "heads are no history");
    kit.write(large("a").label("k", "w").put()).await;
    let one = history().await;
    assert!((10_000..11_000).contains(&one), "{one}");
    // In one transaction too: two versions and a deletion.
    kit.store.write(vec![large("b").label("k", "w").put(), large("b").remove()]).await.expect("in order");
    assert!((4 * one - 500..4 * one + 500).contains(&history().await));
    kit.store.compact(kit.revision().await).await.expect("it compacts");
    assert_eq!(history().await, 0);
    assert_eq!(kit.list(&all()).await.items.len(), 1);
}

pub(super) async fn history_over_its_budget_is_compacted_early(factory: Factory) {
    // No interval and no explicit call: only the budget triggers it.
    let kit = Kit::with(&factory, |options| options.history_bytes = 300_000).await;
    let a = object("ns/a");
    let first = kit.write(a.clone().create()).await.revision;
    let mut last = first;
    for n in 0..40 {
        last = kit.write(a.clone().data(format!("{n}").repeat(25_000)).put()).await.revision;
    }
    let engine = &kit.fixture.engine;
    // The last check comes after at most a sixteenth of the budget was written.
    while engine.history_bytes().await.expect("it is counted") > 330_000 {
        tokio::task::yield_now().await;
    }
    let mark = async || kit.store.clock().await.expect("readable").compacted;
    let mut compacted = mark().await;
    assert!(first < compacted && compacted < last, "{compacted} in {first}..{last}: the newer history stays");
    assert!(is_expired(kit.store.watch(everything(), first).await));
    // The compactor may raise the mark before the read.
    while is_expired(kit.store.get(&a.key(), Some(compacted)).await) {
        assert!(compacted < mark().await, "the mark itself is readable");
        compacted = mark().await;
    }
    let mut watch = kit.watch(everything(), last).await;
    kit.write(object("ns/b").create()).await;
    assert_eq!(next_seen(&mut watch, 1).await, [added("b", "")]);
}

pub(super) async fn a_revision_is_never_reused_after_compaction(factory: Factory) {
    let kit = Kit::new(&factory).await;
    kit.write(object("ns/a").create()).await;
    let gone = kit.write(object("ns/a").remove()).await.revision;
    kit.store.compact(gone).await.expect("it compacts");
    let mut watch = kit.watch(everything(), gone).await;
    let next = kit.write(object("ns/b").create()).await.revision;
    assert_eq!(next, gone.next());
    assert_eq!(next_seen(&mut watch, 1).await, [added("b", "")]);
}

pub(super) async fn reads_at_the_mark_work_and_below_it_expire(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    let one = kit.write(a.clone().data("one").create()).await.revision;
    let two = kit.write(a.clone().data("two").put()).await.revision;
    kit.write(a.clone().data("three").put()).await;
    kit.write(a.clone().remove()).await;
    kit.store.compact(two).await.expect("it compacts");
    assert_eq!(kit.store.clock().await.expect("readable").compacted, two);
    assert_eq!(kit.data(&a, Some(two)).await.as_deref(), Some("two"));
    assert_eq!(kit.data(&a, Some(two.next())).await.as_deref(), Some("three"));
    assert_eq!(kit.names(&ListQuery { at: Some(two), ..all() }).await, ["ns/a"]);
    let expired = Error::Expired { requested: one, compacted: two };
    assert_eq!(kit.store.get(&a.key(), Some(one)).await.expect_err("it is gone"), expired);
    let list = kit.store.list(&ListQuery { at: Some(one), ..all() }).await;
    assert_eq!(list.expect_err("it is gone"), expired);
    let mut watch = kit.watch(everything(), two).await;
    assert_eq!(next_seen(&mut watch, 2).await, [modified("a", "three"), deleted("a", "")]);
}

pub(super) async fn a_continue_position_that_outlives_compaction_is_expired(factory: Factory) {
    let kit = Kit::new(&factory).await;
    for n in 0..10 {
        kit.write(object(&format!("ns/o{n}")).create()).await;
    }
    let first = kit.list(&ListQuery { limit: 5, ..all() }).await;
    let next = ListQuery { limit: 5, at: Some(first.revision), after: behind(&first), ..all() };
    assert_eq!(kit.names(&next).await.len(), 5);
    kit.write(object("ns/o9").remove()).await;
    assert_eq!(kit.names(&next).await.len(), 5);
    kit.store.compact(kit.revision().await).await.expect("it compacts");
    assert!(is_expired(kit.store.list(&next).await));
    // Without a revision the position is still valid: the rest of the list as it is now.
    assert_eq!(kit.names(&ListQuery { at: None, ..next }).await.len(), 4);
}

pub(super) async fn heads_survive_compaction(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let mut writes = Vec::new();
    for n in 0..60 {
        let o = object(&format!("ns/o{n:02}")).label("k", "v");
        writes.push(o.clone().data("old").create());
        if n % 3 > 0 {
            writes.push(o.clone().data("new").put());
        }
        if n % 3 > 1 {
            writes.push(o.remove());
        }
    }
    kit.store.write(writes).await.expect("in order");
    let contents = async || {
        let page = kit.list(&selected(vec![label_is("k", "v")])).await;
        page.items
            .iter()
            .map(|item| (item.key.clone(), item.revision, data_of(&item.value)))
            .collect::<Vec<_>>()
    };
    let before = contents().await;
    assert_eq!(before.len(), 40);
    kit.store.compact(kit.revision().await).await.expect("it compacts");
    assert_eq!(contents().await, before);
    assert_eq!(kit.list(&all()).await.total, Some(40));
    // Surviving objects can be written, deleted and compacted again.
    for n in (0..60).filter(|n| n % 3 < 2) {
        kit.write(object(&format!("ns/o{n:02}")).data("newer").put()).await;
        kit.write(object(&format!("ns/o{n:02}")).remove()).await;
    }
    kit.store.compact(kit.revision().await).await.expect("it compacts");
    assert_eq!(kit.list(&all()).await.total, Some(0));
}

pub(super) async fn compaction_can_be_repeated_and_never_goes_back(factory: Factory) {
    let kit = Kit::new(&factory).await;
    for n in 0..10 {
        kit.write(object(&format!("ns/o{n}")).create()).await;
    }
    let now = kit.revision().await;
    for through in [now, now, Revision(now.0 - 5), Revision::ZERO] {
        kit.store.compact(through).await.expect("it compacts");
        assert_eq!(kit.store.clock().await.expect("readable").compacted, now);
    }
}

pub(super) async fn compaction_ahead_of_the_clock_is_refused(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let current = kit.revision().await;
    let requested = current.next();
    let refused = kit.store.compact(requested).await.expect_err("it has not happened yet");
    assert_eq!(refused, Error::Future { requested, current });
}

pub(super) async fn old_history_is_compacted_by_the_clock(factory: Factory) {
    let kit = Kit::with(&factory, |options| {
        options.compaction = Some(Duration::from_millis(20));
        options.retention = Duration::ZERO;
    })
    .await;
    let mut last = Revision::ZERO;
    for n in 0..30 {
        let a = object("ns/a").data(n.to_string());
        last = kit.write(if n == 0 { a.create() } else { a.put() }).await.revision;
    }
    until(|| async { kit.store.clock().await.expect("readable").compacted == last }).await;
    assert!(is_expired(kit.store.get(&object("ns/a").key(), Some(Revision(last.0 - 1))).await));
    assert_eq!(kit.data(&object("ns/a"), None).await.as_deref(), Some("29"));
}

pub(super) async fn young_history_is_kept(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let first = kit.revision().await;
    for n in 0..30 {
        kit.write(object(&format!("ns/o{n}")).create()).await;
    }
    let engine = &kit.fixture.engine;
    let old = engine.older_than(Duration::from_secs(3600)).await.expect("readable");
    assert!(old <= first, "nothing is an hour old");
    let all = engine.older_than(Duration::ZERO).await.expect("readable");
    assert_eq!(all, kit.revision().await, "everything is older than nothing");
}

pub(super) async fn leaving_a_selection_is_seen_after_compaction(factory: Factory) {
    let kit = Kit::with(&factory, |options| options.ring_events = 1).await;
    let created = kit.write(object("ns/a").label("k", "v").data("selected").create()).await.revision;
    let other = kit.write(object("ns/b").create()).await.revision;
    // Everything up to here is compacted, also the revision of the version that is about to be replaced.
    kit.store.compact(other).await.expect("it compacts");
    assert!(created < other);
    let mut watch = kit.watch(watching(vec![label_is("k", "v")]), other).await;
    kit.write(object("ns/a").label("k", "w").data("hidden").put()).await;
    kit.write(object("ns/b").data("noise").put()).await;
    assert_eq!(next_seen(&mut watch, 1).await, [deleted("a", "selected")]);
}
