//! A clock that is advanced because the database lost a part of its history.

use model::Revision;

use super::Factory;
use super::kit::*;
use crate::engine::{STRIDE, Sweep, beyond};
use crate::{Error, ListQuery};

fn is_expired<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Expired { .. }))
}

pub(super) async fn an_advanced_clock_expires_every_older_revision(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    let before = kit.write(a.create()).await.revision;
    let clock = kit.fixture.engine.advance(beyond(before)).await.expect("it advances");
    assert_eq!(clock.current, Revision(before.0 + STRIDE));
    assert_eq!(clock.compacted, clock.current);
    assert_eq!(kit.store.clock().await.expect("readable"), clock);
    // The second is a revision that the database lost: a client has it, and the clock had not reached it again.
    for requested in [before, Revision(before.0 + 30)] {
        let expired = Error::Expired { requested, compacted: clock.compacted };
        assert_eq!(kit.store.get(&a.key(), Some(requested)).await.expect_err("too old"), expired);
        let list = kit.store.list(&ListQuery { at: Some(requested), ..all() }).await;
        assert_eq!(list.expect_err("too old"), expired);
        assert_eq!(kit.store.watch(everything(), requested).await.err(), Some(expired));
    }
    assert_eq!(kit.list(&all()).await.revision, clock.current);
    assert!(kit.data(&a, Some(clock.current)).await.is_some());
}

pub(super) async fn an_advanced_clock_ends_every_watch_once(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let before = kit.write(object("ns/a").label("k", "v").create()).await.revision;
    let mut watches = vec![
        // Four watches: with changes to read, fully caught up, selecting nothing, ahead of the clock.
        kit.watch(everything(), Revision(before.0 - 1)).await,
        kit.watch(everything(), before).await,
        kit.watch(watching(vec![label_is("k", "never")]), before).await,
        kit.watch(everything(), Revision(before.0 + 30)).await,
    ];
    kit.fixture.engine.advance(beyond(before)).await.expect("it advances");
    for watch in &mut watches {
        // Changes committed before the advance may still arrive.
        let mut next = watch.next().await;
        while next.is_ok() {
            next = watch.next().await;
        }
        assert!(is_expired(next));
    }
    let mut watch = kit.watch(everything(), kit.revision().await).await;
    kit.write(object("ns/b").create()).await;
    assert_eq!(next_seen(&mut watch, 1).await, [added("b", "")]);
}

pub(super) async fn a_revision_below_an_advanced_clock_is_never_given_out(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let before = kit.write(object("ns/a").create()).await.revision;
    let clock = kit.fixture.engine.advance(Revision(before.0 + 50)).await.expect("it advances");
    assert_eq!(clock.current, Revision(before.0 + 50));
    assert_eq!(kit.write(object("ns/b").create()).await.revision, clock.current.next());
    // A clock that is already there moves by one, so that every reader notices.
    for to in [Revision::ZERO, before, clock.current] {
        let now = kit.revision().await;
        assert_eq!(kit.fixture.engine.advance(to).await.expect("it advances").current, now.next());
    }
}

pub(super) async fn an_advanced_clock_keeps_the_objects(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let (a, b) = (object("ns/a").label("k", "v"), object("ns/b").label("k", "v"));
    let created = kit.write(a.clone().data("old").create()).await.revision;
    kit.write(b.create()).await;
    kit.write(b.remove()).await;
    kit.fixture.engine.advance(beyond(created)).await.expect("it advances");
    let page = kit.list(&selected(vec![label_is("k", "v")])).await;
    assert_eq!((names(&page), page.total), (vec!["ns/a".to_owned()], Some(1)));
    assert_eq!(page.items[0].revision, created, "an object keeps the revision that wrote it");
    // Preconditions on it still hold.
    kit.write(a.clone().data("new").update(at(created))).await;
    assert_eq!(kit.data(&a, None).await.as_deref(), Some("new"));
}

pub(super) async fn history_below_an_advanced_clock_is_swept_in_steps_of_changes(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    kit.write(a.create()).await;
    for n in 0..9 {
        kit.write(a.clone().data(n.to_string()).put()).await;
    }
    let engine = &kit.fixture.engine;
    let clock = engine.advance(beyond(kit.revision().await)).await.expect("it advances");
    let mut steps = 1;
    while engine.compact(clock.current, 4).await.expect("it compacts") == Sweep::More {
        steps += 1;
    }
    assert_eq!(steps, 3, "ten changes in steps of four, and a billion skipped revisions in none");
    assert_eq!(kit.data(&a, None).await.as_deref(), Some("8"));
    let now = engine.older_than(std::time::Duration::ZERO).await.expect("readable");
    assert_eq!(now, clock.current);
}
