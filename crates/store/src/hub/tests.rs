//! The watches that a change rings, without an engine.

use model::selector::{Requirement, Target, Test};
use model::{Attributes, ObjectKey, Selector, Uid};

use super::topic::RingRead;
use super::*;
use crate::types::{Action, Change};

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn labels(value: &str) -> Attributes {
    if value.is_empty() {
        return Attributes::default();
    }
    Attributes::new(vec![("app".into(), value.into())], vec![("spec.nodeName".into(), value.into())])
}

/// An update of `namespace/name` whose label goes from one value to another; empty for none.
fn change(revision: u64, path: &str, from: &str, to: &str) -> Arc<SharedChange> {
    let (namespace, name) = path.split_once('/').unwrap();
    Arc::new(SharedChange::new(Change {
        revision: Revision(revision),
        key: ObjectKey::new(&pods(), namespace, name),
        uid: Uid("u".into()),
        action: Action::Update,
        previous: Revision(1),
        attributes: labels(to),
        previous_attributes: labels(from),
        value: bytes::Bytes::from_static(b"{}"),
        version_at: 1,
    }))
}

fn scope(namespace: Option<&str>, name: Option<&str>, requirements: Vec<Requirement>) -> WatchScope {
    WatchScope {
        resource: pods(),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        selector: Selector { requirements },
    }
}

fn requires(target: Target, key: &str, test: Test) -> Vec<Requirement> {
    vec![Requirement { target, key: key.into(), test }]
}

fn is(value: &str) -> Test {
    Test::In(vec![value.into()])
}

fn topic() -> Topic {
    Topic::new(&pods(), Revision(10), false)
}

/// The ids of the watches that a change rings.
fn rings(topic: &Topic, change: Arc<SharedChange>) -> Vec<u64> {
    let mut rung = Vec::new();
    topic.publish(vec![change], &mut rung);
    let mut ids: Vec<u64> = rung.iter().map(|subscription| subscription.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_change_rings_the_watches_that_it_touches_and_no_others() {
    let topic = topic();
    let scopes = [
        scope(None, None, vec![]),
        scope(Some("m"), None, vec![]),
        scope(Some("n"), None, vec![]),
        scope(Some("m"), Some("a"), vec![]),
        scope(Some("m"), Some("b"), vec![]),
        scope(None, Some("a"), vec![]),
        scope(None, None, requires(Target::Label, "app", is("web"))),
        scope(None, None, requires(Target::Label, "app", is("db"))),
        scope(Some("m"), None, requires(Target::Field, "spec.nodeName", is("web"))),
        scope(None, None, requires(Target::Label, "app", Test::NotIn(vec!["web".into()]))),
        scope(None, None, requires(Target::Field, "metadata.name", is("a"))),
        scope(None, None, requires(Target::Field, "metadata.name", is("b"))),
        scope(None, None, requires(Target::Field, "metadata.namespace", is("m"))),
    ];
    let _watches: Vec<_> = scopes.into_iter().map(|scope| topic.subscribe(scope, Revision(10))).collect();
    assert_eq!(rings(&topic, change(11, "m/a", "web", "web")), [1, 2, 4, 6, 7, 9, 11, 13]);
    // A rung watch reads on by itself and is not tested again.
    assert_eq!(rings(&topic, change(12, "m/a", "web", "db")), [8, 10]);
    assert_eq!(rings(&topic, change(13, "n/b", "db", "db")), [3, 12]);
    assert_eq!(rings(&topic, change(14, "m/b", "db", "db")), [5]);
}

#[test]
fn a_watch_of_one_value_is_rung_when_an_object_comes_to_it_or_leaves_it() {
    for (from, to, rung) in [("web", "db", true), ("db", "web", true), ("db", "", false), ("", "web", true)] {
        let topic = topic();
        let selector = requires(Target::Label, "app", is("web"));
        let _watch = topic.subscribe(scope(None, None, selector), Revision(10));
        assert_eq!(!rings(&topic, change(11, "m/a", from, to)).is_empty(), rung, "{from:?} to {to:?}");
    }
}

#[test]
fn a_watch_that_has_read_everything_is_quiet_again() {
    let topic = topic();
    let watch = topic.subscribe(scope(None, None, vec![]), Revision(10));
    assert_eq!(rings(&topic, change(11, "m/a", "", "")), [watch.id]);
    assert!(matches!(topic.look(&watch, Revision(10), 9), RingRead::Recent(changes) if changes.len() == 1));
    // It got the change but did not look again: still not quiet.
    assert!(rings(&topic, change(12, "m/a", "", "")).is_empty());
    assert!(matches!(topic.look(&watch, Revision(12), 9), RingRead::Nothing));
    assert_eq!(rings(&topic, change(13, "m/a", "", "")), [watch.id]);
}

#[test]
fn a_new_watch_finds_changes_already_in_memory() {
    let topic = topic();
    rings(&topic, change(11, "m/a", "", ""));
    rings(&topic, change(12, "m/a", "", ""));
    let watch = topic.subscribe(scope(None, None, vec![]), Revision(11));
    assert!(matches!(topic.look(&watch, Revision(11), 9), RingRead::Recent(changes) if changes.len() == 1));
    let behind = topic.subscribe(scope(None, None, vec![]), Revision(9));
    assert!(matches!(topic.look(&behind, Revision(9), 9), RingRead::Behind(after) if after == Revision(9)));
    let ahead = topic.subscribe(scope(None, None, vec![]), Revision(13));
    assert!(rings(&topic, change(13, "m/a", "", "")).is_empty());
    assert_eq!(rings(&topic, change(14, "m/a", "", "")), [ahead.id]);
}

#[test]
fn an_idle_watch_does_not_fall_behind_when_memory_is_full() {
    let limits = RingLimits { events: 2, bytes: usize::MAX };
    let hub = Hub::new(Revision(10), 0, limits, Metrics::unregistered());
    let idle_scope = scope(None, None, requires(Target::Label, "app", is("never")));
    let (topic, idle) = hub.subscribe(idle_scope, Revision(10));
    let (_, reading) = hub.subscribe(scope(None, None, vec![]), Revision(10));
    for revision in 11..20 {
        drop(hub.publish(vec![change(revision, "m/a", "web", "web")]));
    }
    assert_eq!(topic.position(&idle, Revision(10), &hub.head), Revision(19));
    assert_eq!(topic.position(&reading, Revision(10), &hub.head), Revision(10));
    assert!(matches!(topic.look(&idle, Revision(10), 9), RingRead::Nothing));
    assert!(matches!(topic.look(&reading, Revision(10), 9), RingRead::Behind(_)));
    assert!(matches!(topic.look(&reading, Revision(17), 9), RingRead::Recent(changes) if changes.len() == 2));
}

#[test]
fn memory_is_bounded_in_bytes_too() {
    let size = change(11, "m/a", "", "").size();
    let limits = RingLimits { events: usize::MAX, bytes: 3 * size };
    let metrics = Metrics::unregistered();
    let hub = Hub::new(Revision(10), 0, limits, metrics.clone());
    drop(hub.publish((11..30).map(|revision| change(revision, "m/a", "", "")).collect()));
    assert_eq!(metrics.ring_bytes.get(), i64::try_from(3 * size).unwrap());
    let (topic, watch) = hub.subscribe(scope(None, None, vec![]), Revision(26));
    assert!(matches!(topic.look(&watch, Revision(26), 9), RingRead::Recent(changes) if changes.len() == 3));
}

#[test]
fn frames_count_into_the_memory_of_recent_changes_and_push_older_ones_out() {
    let size = change(11, "m/a", "", "").size();
    let limits = RingLimits { events: usize::MAX, bytes: 4 * size + 1000 };
    let metrics = Metrics::unregistered();
    let hub = Hub::new(Revision(10), 0, limits, metrics.clone());
    drop(hub.publish((11..15).map(|revision| change(revision, "m/a", "", "")).collect()));
    let (topic, watch) = hub.subscribe(scope(None, None, vec![]), Revision(10));
    let RingRead::Recent(changes) = topic.look(&watch, Revision(10), 9) else { panic!("they are in memory") };
    let frame = |of: usize, slot: u32| changes[of].frame(slot, |_| bytes::Bytes::from(vec![0; 836]));
    let is_over = || futures::FutureExt::now_or_never(hub.exceeded()).is_some();
    frame(3, 0);
    frame(3, 0);
    assert_eq!(hub.memory.bytes(), 4 * size + 900, "a frame is made and counted once");
    assert!(!is_over());
    frame(3, 1);
    assert!(is_over(), "the second form of the same change is memory of its own");
    hub.trim();
    // Two changes of some 500 bytes were evicted for 1800 bytes of frames.
    assert_eq!(hub.memory.bytes(), 2 * size + 1800);
    assert_eq!(metrics.ring_bytes.get(), i64::try_from(2 * size + 1800).unwrap());
    assert!(matches!(topic.look(&watch, Revision(11), 9), RingRead::Behind(_)));
    assert!(matches!(topic.look(&watch, Revision(12), 9), RingRead::Recent(changes) if changes.len() == 2));
    frame(0, 0);
    assert_eq!(hub.memory.bytes(), 2 * size + 1800, "a change that has left counts no more");
    hub.reset(Revision(50));
    assert_eq!(hub.memory.bytes(), 0);
}

#[test]
fn after_a_gap_that_cannot_be_filled_quiet_watches_have_to_look_again() {
    let limits = RingLimits { events: 9, bytes: usize::MAX };
    let hub = Hub::new(Revision(10), 0, limits, Metrics::unregistered());
    let (topic, quiet) = hub.subscribe(scope(None, None, vec![]), Revision(10));
    hub.reset(Revision(50));
    assert!(matches!(topic.look(&quiet, Revision(10), 9), RingRead::Behind(after) if after == Revision(10)));
    let (_, fresh) = hub.subscribe(scope(None, None, vec![]), Revision(50));
    drop(hub.publish(vec![change(51, "m/a", "", "")]));
    assert!(matches!(topic.look(&fresh, Revision(50), 9), RingRead::Recent(changes) if changes.len() == 1));
}

#[test]
fn a_dropped_watch_leaves_nothing_behind() {
    let topic = topic();
    for requirements in [vec![], requires(Target::Label, "app", is("web"))] {
        let watch = topic.subscribe(scope(Some("m"), None, requirements), Revision(10));
        topic.unsubscribe(&watch);
        assert_eq!(Arc::strong_count(&watch), 1);
    }
    assert!(rings(&topic, change(11, "m/a", "web", "web")).is_empty());
}

#[tokio::test]
async fn many_watches_are_rung_in_turns_and_all_of_them_when_the_publisher_is_dropped() {
    let limits = RingLimits { events: 100, bytes: 1 << 20 };
    let hub = Hub::new(Revision(10), 0, limits, Metrics::unregistered());
    let subscriptions: Vec<_> =
        (0..200).map(|_| hub.subscribe(scope(None, None, Vec::new()), Revision(10)).1).collect();
    let is_rung = |subscription: &Arc<Subscription>| {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let is_rung = std::pin::pin!(subscription.rung()).poll(&mut context).is_ready();
        if is_rung {
            subscription.ring();
        }
        is_rung
    };
    let mut ringing = Box::pin(hub.publish(vec![change(11, "m/a", "", "")]).ring());
    assert!(futures::poll!(&mut ringing).is_pending(), "other tasks get a turn");
    let rung = subscriptions.iter().filter(|subscription| is_rung(subscription)).count();
    assert!((1..200).contains(&rung), "{rung}");
    drop(ringing);
    assert!(subscriptions.iter().all(is_rung));
}
