//! Tables: the keys that events enqueue, and the decisions about objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decide::{CollectorStep, Facts, Propagation, Standing, decide};
use super::graph::{CollectedObject, Graph, Uid};
use super::{Key, Types};
use controller::discovery::{Discovery, ServedResource};
use controller::{Outcome, ResourceKind};

const OWNER: &str = "00000000-0000-0000-0000-000000000001";

fn maps() -> Arc<ServedResource> {
    let kind = ResourceKind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
    Arc::new(ServedResource {
        resource: kind.resource(),
        is_namespaced: true,
        verbs: vec![],
        is_preferred: true,
        has_status: false,
        has_scale: false,
    })
}

fn reference(uid: &str, is_blocking: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": is_blocking})
}

/// A graph and the objects that it observes.
#[derive(Default)]
struct GraphFixture {
    graph: Graph,
}

impl GraphFixture {
    fn observe(&mut self, uid: &str, more: Value) -> Vec<Key> {
        self.observe_in_list(1, uid, more)
    }

    fn observe_in_list(&mut self, reading: u32, uid: &str, more: Value) -> Vec<Key> {
        let mut metadata = json!({"name": uid, "namespace": "n", "uid": uid, "resourceVersion": "1"});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let CollectedObject { metadata } = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        self.graph.observe(&maps(), metadata, reading)
    }

    /// Adds an object with an owner.
    fn dependent(&mut self, uid: &str, is_blocking: bool) -> Vec<Key> {
        self.observe(uid, json!({"ownerReferences": [reference(OWNER, is_blocking)]}))
    }

    /// Starts the deletion of the owner.
    fn waits(&mut self, finalizer: &str) -> Vec<Key> {
        self.observe(OWNER, json!({"finalizers": [finalizer], "deletionTimestamp": "2026-01-01T00:00:00Z"}))
    }
}

fn object(uid: &str) -> Key {
    Key::Object(Uid::of(uid))
}

fn owner() -> Key {
    Key::Owner(Uid::of(OWNER))
}

#[test]
fn objects_without_owners_are_not_cached() {
    let mut world = GraphFixture::default();
    assert_eq!(world.observe("a", json!({})), []);
    assert_eq!(
        world.observe("b", json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]})),
        []
    );
    assert_eq!(world.graph.size(), (0, 0));
}

#[test]
fn an_owner_is_looked_up_once_and_its_deletion_enqueues_its_dependents() {
    let mut world = GraphFixture::default();
    assert_eq!(world.dependent("a", false), [owner()]);
    assert_eq!(world.dependent("b", false), []);
    assert_eq!(world.dependent("a", false), [], "nothing new");
    assert_eq!(world.observe(OWNER, json!({})), []);
    let mut keys = world.graph.remove_observed(OWNER);
    keys.sort_by_key(|key| *key != object("a"));
    assert_eq!(keys, [object("a"), object("b")]);
    assert_eq!(world.dependent("c", false), [object("c")], "it comes too late");
    for gone in ["a", "b", "c"] {
        world.graph.remove_observed(gone);
    }
    assert_eq!(world.graph.size(), (0, 0));
}

#[test]
fn a_new_dependent_of_an_absent_owner_is_enqueued() {
    let mut world = GraphFixture::default();
    assert_eq!(world.dependent("a", false), [owner()]);
    assert_eq!(world.graph.mark_not_found(Uid::of(OWNER)), [object("a")]);
    // The first dependent still exists: it has another owner, and loses this one in a moment.
    assert_eq!(world.dependent("b", false), [object("b")]);
    assert_eq!(world.dependent("b", false), [], "nothing new");
}

#[test]
fn a_new_dependent_of_a_waiting_owner_is_enqueued() {
    let mut world = GraphFixture::default();
    world.dependent("a", true);
    world.waits("foregroundDeletion");
    assert_eq!(world.dependent("b", true), [object("b")]);
    assert_eq!(world.dependent("b", true), [], "nothing new");
    assert_eq!(world.graph.remove_observed("a"), [], "one still holds it up");
    assert_eq!(world.graph.remove_observed("b"), [object(OWNER)]);
}

#[test]
fn an_object_that_loses_its_owner_is_removed() {
    let mut world = GraphFixture::default();
    world.dependent("a", false);
    assert_eq!(world.observe("a", json!({})), []);
    assert_eq!(world.graph.size(), (0, 0));
    assert_eq!(world.graph.remove_observed(OWNER), []);
}

#[test]
fn a_waiting_owner_is_enqueued_when_its_last_blocking_dependent_is_gone() {
    let mut world = GraphFixture::default();
    world.dependent("a", true);
    world.dependent("b", true);
    world.dependent("c", false);
    let keys = world.waits("foregroundDeletion");
    assert_eq!((keys.len(), keys.last()), (4, Some(&object(OWNER))));
    assert_eq!(world.graph.remove_observed("a"), []);
    assert_eq!(world.dependent("b", false), [object(OWNER)], "it no longer blocks");
    assert_eq!(world.graph.blocking(Uid::of(OWNER)), []);
    assert_eq!(world.waits("foregroundDeletion"), [], "it waited already");
}

#[test]
fn an_orphaning_owner_is_enqueued_without_its_dependents() {
    let mut world = GraphFixture::default();
    world.dependent("a", true);
    assert_eq!(world.waits("orphan"), [object(OWNER)]);
}

#[test]
fn a_dependent_with_other_coordinates_of_its_owner_is_enqueued() {
    let mut world = GraphFixture::default();
    world.dependent("a", false);
    let other = |name: &str, namespace: &str| {
        let mut reference = reference(OWNER, false);
        reference["name"] = name.into();
        json!({"ownerReferences": [reference], "namespace": namespace})
    };
    assert_eq!(world.observe("b", other("another", "n")), [object("b")]);
    assert_eq!(world.observe("c", other("owner", "m")), [object("c")]);
}

#[test]
fn a_new_list_removes_missing_objects_and_owners_are_looked_up_again() {
    let mut world = GraphFixture::default();
    world.dependent("a", false);
    world.dependent("b", true);
    world.waits("foregroundDeletion");
    let owned = json!({"ownerReferences": [reference(OWNER, false)]});
    world.observe_in_list(2, "a", owned);
    world.observe_in_list(
        2,
        OWNER,
        json!({"finalizers": ["foregroundDeletion"], "deletionTimestamp": "2026-01-01T00:00:00Z"}),
    );
    assert_eq!(world.graph.relisted(&maps(), 2), [object(OWNER), owner()]);
    assert!(world.graph.node(Uid::of("b")).is_none());
}

#[test]
fn an_object_may_refer_to_an_owner_twice() {
    let mut world = GraphFixture::default();
    let both = json!({"ownerReferences": [reference(OWNER, true), reference(OWNER, true)]});
    assert_eq!(world.observe("a", both), [owner()]);
    world.waits("foregroundDeletion");
    assert_eq!(world.graph.remove_observed("a"), [object(OWNER)]);
}

#[test]
fn uids_in_any_format_are_distinct() {
    let texts = [
        OWNER,
        "",
        "-",
        "a",
        "b",
        "00000000-0000-0000-0000-00000000000g",
        "0000000000000000000000000000000000",
    ];
    for (index, one) in texts.iter().enumerate() {
        for other in &texts[index + 1..] {
            assert_ne!(Uid::of(one), Uid::of(other), "{one} {other}");
        }
    }
}

#[test]
fn decisions_follow_from_the_states_of_owners() {
    use Propagation::{Background, Foreground, Orphan};
    use Standing::{Absent, Solid, Waiting};
    let facts = |propagation| Facts { propagation, has_dependents: false, is_dependent_waiting: false };
    let plain = facts(Background);
    let owning = Facts { has_dependents: true, ..plain };
    let circle = Facts { is_dependent_waiting: true, ..owning };
    let cases: [(&[Standing], Facts, CollectorStep); 12] = [
        (&[], plain, CollectorStep::Nothing),
        (&[Solid], plain, CollectorStep::Nothing),
        (&[Solid, Solid], circle, CollectorStep::Nothing),
        (&[Solid, Absent], plain, CollectorStep::Release),
        (&[Waiting, Solid], circle, CollectorStep::Release),
        (&[Absent], plain, CollectorStep::Delete(Background)),
        (&[Absent, Absent], owning, CollectorStep::Delete(Background)),
        (&[Absent], facts(Orphan), CollectorStep::Delete(Orphan)),
        (&[Absent], facts(Foreground), CollectorStep::Delete(Foreground)),
        (&[Waiting], plain, CollectorStep::Delete(Background)),
        (&[Absent, Waiting], owning, CollectorStep::DeleteForeground { unblock: false }),
        (&[Waiting], circle, CollectorStep::DeleteForeground { unblock: true }),
    ];
    for (standings, facts, expected) in cases {
        assert_eq!(decide(standings, facts), expected, "{standings:?} {facts:?}");
    }
}

#[test]
fn a_key_that_waits_for_a_type_served_meanwhile_is_retried_at_once() {
    let (key, mut types) = (Key::Object(Uid::of(OWNER)), Types::default());
    assert_eq!(types.wait_for(key, "v1", "ConfigMap"), Outcome::Done);
    assert!(types.waiting.remove(&key));
    types.served =
        Arc::new(Discovery { resources: vec![ServedResource::clone(&maps())], ..Discovery::default() });
    assert_eq!(types.wait_for(key, "v1", "ConfigMap"), Outcome::RequeueAfter(std::time::Duration::ZERO));
    assert!(types.waiting.is_empty());
}
