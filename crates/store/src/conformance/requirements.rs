//! Requirements of a transaction on objects that it does not write.

use model::selector::Target;
use tokio::task::JoinSet;

use super::Factory;
use super::kit::*;
use crate::{Error, Precondition, Write};

/// Requires that the parent exists and is open.
fn open(parent: &Object) -> Write {
    let not_closed = requirement(Target::Field, "phase", none_of(&["closed"]));
    parent.require(Precondition::default(), vec![not_closed])
}

fn parent() -> Object {
    object("parent").field("phase", "open")
}

fn closed() -> Object {
    object("parent").field("phase", "closed")
}

fn is_conflict(error: &Error, parent: &Object) -> bool {
    matches!(error, Error::Conflict { key, .. } if *key == parent.key())
}

pub(super) async fn a_requirement_that_holds_writes_nothing_and_gives_nothing(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let first = kit.write(parent().create()).await;
    assert!(kit.store.write(vec![open(&parent())]).await.expect("it holds").is_empty());
    assert_eq!(kit.revision().await, first.revision);
    let exact = parent().require(at(first.revision), vec![]);
    let child = object("ns/child");
    let written = kit.store.write(vec![open(&parent()), child.create(), exact]).await.expect("all hold");
    assert_eq!(written.iter().map(|written| written.revision).collect::<Vec<_>>(), [first.revision.next()]);
    assert_eq!(kit.list(&all()).await.total, Some(2));
    let unread = kit.store.get(&parent().key(), None).await.expect("it is readable").expect("it is there");
    assert_eq!(unread.revision, first.revision);
}

pub(super) async fn a_requirement_without_a_head_is_not_found(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let before = kit.revision().await;
    let refused = kit.store.write(vec![open(&parent()), object("ns/child").create()]).await;
    assert_eq!(refused.expect_err("there is no parent"), Error::NotFound { key: parent().key() });
    kit.write(parent().create()).await;
    kit.write(parent().remove()).await;
    let refused = kit.store.write(vec![object("ns/child").create(), open(&parent())]).await;
    assert_eq!(refused.expect_err("the parent is gone"), Error::NotFound { key: parent().key() });
    assert_eq!(kit.revision().await, before.next().next());
    // No database holds an object of such a name.
    for name in ["a\0b".to_owned(), "x".repeat(1000)] {
        assert_eq!(kit.refused(open(&object(&name))).await, Error::NotFound { key: object(&name).key() });
    }
}

pub(super) async fn a_head_of_another_revision_or_uid_does_not_satisfy(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let first = kit.write(parent().uid("one").create()).await.revision;
    let uid = |uid: &str| Precondition { revision: None, uid: Some(model::Uid(uid.to_owned())) };
    for expect in [at(first.next()), uid("two")] {
        let refused =
            kit.store.write(vec![parent().require(expect, vec![]), object("ns/child").create()]).await;
        let expected = Error::Conflict {
            key: parent().key(),
            actual_revision: first,
            actual_uid: model::Uid("one".into()),
        };
        assert_eq!(refused.expect_err("it is another head"), expected);
    }
    let writes = vec![parent().require(uid("one"), vec![]), object("ns/child").create()];
    kit.store.write(writes).await.expect("it is the head");
}

pub(super) async fn a_head_that_the_selector_leaves_out_does_not_satisfy(factory: Factory) {
    let kit = Kit::new(&factory).await;
    kit.write(parent().create()).await;
    kit.write(closed().put()).await;
    let refused = kit.store.write(vec![open(&parent()), object("ns/child").create()]).await;
    assert!(is_conflict(&refused.expect_err("it is closed"), &parent()));
    assert!(kit.data(&object("ns/child"), None).await.is_none());
    kit.write(parent().put()).await;
    kit.store.write(vec![open(&parent()), object("ns/child").create()]).await.expect("it is open again");
}

pub(super) async fn a_requirement_is_checked_before_the_writes_behind_it(factory: Factory) {
    let kit = Kit::new(&factory).await;
    kit.write(object("ns/child").create()).await;
    let refused = kit.store.write(vec![open(&parent()), object("ns/child").create()]).await;
    assert_eq!(refused.expect_err("two reasons"), Error::NotFound { key: parent().key() });
    let refused = kit.store.write(vec![object("ns/child").create(), open(&parent())]).await;
    assert_eq!(refused.expect_err("two reasons"), Error::AlreadyExists { key: object("ns/child").key() });
}

pub(super) async fn a_requirement_sees_the_steps_before_it(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let child = object("ns/child");
    let writes = vec![parent().create(), open(&parent()), child.create()];
    assert_eq!(kit.store.write(writes).await.expect("the parent comes first").len(), 2);
    let writes = vec![closed().put(), open(&parent())];
    assert!(is_conflict(&kit.store.write(writes).await.expect_err("it was just closed"), &parent()));
    let writes = vec![open(&parent()), parent().remove(), open(&parent())];
    let refused = kit.store.write(writes).await.expect_err("it was just removed");
    assert_eq!(refused, Error::NotFound { key: parent().key() });
    kit.store.write(vec![open(&parent())]).await.expect("what was refused left no trace");
}

/// Writers that add children, while others open, close and remove the parent: the log shows no child under a
/// parent that was not open.
pub(super) async fn requirements_see_the_earlier_transactions_of_their_batch(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let from = kit.revision().await;
    kit.write(parent().create()).await;
    let mut writers = JoinSet::new();
    for writer in 0..40 {
        let store = kit.store.clone();
        writers.spawn(async move {
            let mut done = 0;
            for round in 0..5 {
                let child = object(&format!("ns/c{writer:02}-{round}"));
                let steps = match writer % 8 {
                    0 => vec![closed().put()],
                    1 => vec![parent().put()],
                    2 => vec![parent().remove()],
                    3 => vec![parent().create()],
                    _ => vec![open(&parent()), child.create()],
                };
                done += usize::from(store.write(steps).await.is_ok());
            }
            done
        });
    }
    let changes = writers.join_all().await.into_iter().sum::<usize>();
    // A watch shows the log; puts that change nothing are not in it.
    let through = kit.revision().await;
    let count = usize::try_from(through.0 - from.0).expect("few changes");
    assert!(count <= changes + 1, "{count} {changes}");
    let mut watch = kit.watch(everything(), from).await;
    let mut is_open = false;
    for event in next(&mut watch, count).await {
        let change = &event.change;
        if change.key == parent().key() {
            is_open =
                change.action != crate::Action::Delete && change.attributes.field("phase") == Some("open");
        } else {
            assert!(is_open, "{} was made at {}", change.key, change.revision);
        }
    }
}
