//! Single writes and their preconditions.

use std::collections::BTreeSet;

use model::{Resource, Revision, Uid};
use tokio::task::JoinSet;

use super::Factory;
use super::kit::*;
use crate::{Error, Precondition, Store};

pub(super) async fn a_write_gives_the_revision_that_its_value_carries(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let before = kit.revision().await;
    let a = object("ns/a").data("one");
    let created = kit.write(a.create()).await;
    let updated = kit.write(a.clone().data("two").put()).await;
    let gone = kit.write(a.clone().data("two").remove()).await;
    for (written, step, data) in [(created, 1, "one"), (updated, 2, "two"), (gone, 3, "two")] {
        assert_eq!(written.revision, Revision(before.0 + step));
        assert_eq!(version_of(&written.value), written.revision);
        assert_eq!(data_of(&written.value), data);
    }
    assert_eq!(kit.data(&a, None).await, None);
}

pub(super) async fn a_second_create_is_refused(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    kit.write(a.create()).await;
    assert_eq!(kit.refused(a.create()).await, Error::AlreadyExists { key: a.key() });
}

pub(super) async fn a_stale_revision_is_a_conflict_that_names_the_head(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a").data("one");
    let first = kit.write(a.create()).await.revision;
    let second = kit.write(a.clone().data("two").update(at(first))).await.revision;
    let conflict =
        Error::Conflict { key: a.key(), actual_revision: second, actual_uid: Uid("uid-of-ns/a".into()) };
    assert_eq!(kit.refused(a.clone().data("three").update(at(first))).await, conflict);
    assert_eq!(kit.refused(a.delete(at(first))).await, conflict);
    assert_eq!(kit.data(&a, None).await.as_deref(), Some("two"));
    assert_eq!(kit.revision().await, second, "a refused write takes no revision");
    kit.write(a.delete(at(second))).await;
}

pub(super) async fn a_wrong_uid_is_a_conflict(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a").uid("right");
    kit.write(a.create()).await;
    let uid = |uid: &str| Precondition { revision: None, uid: Some(Uid(uid.to_owned())) };
    for write in [a.clone().data("x").update(uid("wrong")), a.delete(uid("wrong"))] {
        assert!(
            matches!(kit.refused(write).await, Error::Conflict { actual_uid, .. } if actual_uid.0 == "right")
        );
    }
    kit.write(a.clone().data("x").update(uid("right"))).await;
    kit.write(a.delete(uid("right"))).await;
}

pub(super) async fn an_update_or_delete_of_nothing_is_not_found(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    let missing = Error::NotFound { key: a.key() };
    assert_eq!(kit.refused(a.put()).await, missing);
    assert_eq!(kit.refused(a.remove()).await, missing);
    kit.write(a.create()).await;
    kit.write(a.remove()).await;
    assert_eq!(kit.refused(a.put()).await, missing);
    assert_eq!(kit.refused(a.remove()).await, missing);
}

pub(super) async fn an_update_that_changes_nothing_keeps_its_version(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a").data("same").label("a", "1");
    let created = kit.write(a.create()).await;
    let mut watch = kit.watch(everything(), created.revision).await;
    let again = kit.write(a.put()).await;
    assert_eq!(again.revision, created.revision);
    assert_eq!(again.value, created.value);
    assert_eq!(kit.revision().await, created.revision);
    // Equal bytes with other attributes are a change: selectors have to see it.
    let relabelled = kit.write(object("ns/a").data("same").label("a", "2").put()).await;
    assert!(relabelled.revision > created.revision);
    assert_eq!(next_seen(&mut watch, 1).await, [modified("a", "same")]);
}

pub(super) async fn equal_names_of_two_groups_do_not_collide(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let (ours, theirs) = (Resource::new("ours.example", "things"), Resource::new("theirs.example", "things"));
    let one = object("ns/a").of(&ours).data("one");
    let two = object("ns/a").of(&theirs).data("two");
    kit.write(one.create()).await;
    kit.write(two.create()).await;
    kit.write(two.remove()).await;
    assert_eq!(kit.data(&one, None).await.as_deref(), Some("one"));
    let mut list = all();
    list.resource = theirs;
    assert!(kit.names(&list).await.is_empty());
}

pub(super) async fn a_name_that_is_created_again_has_a_higher_revision(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let first = object("ns/a").uid("first");
    kit.write(first.create()).await;
    let gone = kit.write(first.remove()).await;
    let second = kit.write(object("ns/a").uid("second").create()).await;
    assert!(second.revision > gone.revision);
    let stored = kit.store.get(&first.key(), None).await.expect("it is readable").expect("it is there");
    assert_eq!(stored.uid, Uid("second".into()));
}

pub(super) async fn concurrent_updates_of_one_object_lose_nothing(factory: Factory) {
    const WRITERS: usize = 8;
    const TIMES: usize = 20;
    async fn increment(store: Store, times: usize) {
        let counter = object("ns/counter");
        for _ in 0..times {
            loop {
                let stored = store.get(&counter.key(), None).await.expect("readable").expect("there");
                let next = data_of(&stored.value).parse::<usize>().expect("a number") + 1;
                let write = counter.clone().data(next.to_string()).update(at(stored.revision));
                match store.write(vec![write]).await {
                    Ok(_) => break,
                    Err(Error::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    let kit = Kit::new(&factory).await;
    kit.write(object("ns/counter").data("0").create()).await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        writers.spawn(increment(kit.store.clone(), TIMES));
    }
    writers.join_all().await;
    assert_eq!(kit.data(&object("ns/counter"), None).await, Some((WRITERS * TIMES).to_string()));
}

pub(super) async fn revisions_of_concurrent_writers_are_consecutive(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let before = kit.revision().await;
    let mut writers = JoinSet::new();
    for writer in 0..32 {
        let store = kit.store.clone();
        writers.spawn(async move {
            let write = object(&format!("ns/o{writer}")).create();
            store.write(vec![write]).await.expect("the create succeeds")[0].revision
        });
    }
    let revisions: BTreeSet<u64> = writers.join_all().await.into_iter().map(|revision| revision.0).collect();
    assert!(revisions.into_iter().eq(before.0 + 1..=before.0 + 32));
}
