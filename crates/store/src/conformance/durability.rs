//! State that survives the store that wrote it.

use std::task::Poll;

use super::Factory;
use super::kit::*;
use crate::{Error, ListQuery, Metrics, Options, Store};

async fn reopened(kit: &Kit) -> Option<Store> {
    let reopen = kit.fixture.reopen.clone()?;
    kit.store.close().await;
    let engine = reopen().await;
    let options = Options { compaction: None, ..Options::default() };
    Some(Store::open(engine, options, &Metrics::unregistered()).await.expect("it opens again"))
}

pub(super) async fn everything_is_there_after_reopening(factory: Factory) {
    let mut kit = Kit::new(&factory).await;
    let a = object("ns/a").label("k", "v");
    let first = kit.write(a.clone().data("one").create()).await.revision;
    kit.write(a.clone().data("two").put()).await;
    kit.write(object("ns/b").create()).await;
    kit.write(object("ns/b").remove()).await;
    let clock = kit.store.clock().await.expect("readable");
    let Some(store) = reopened(&kit).await else { return };
    kit.store = store;
    assert_eq!(kit.store.clock().await.expect("readable"), clock);
    assert_eq!(kit.names(&selected(vec![label_is("k", "v")])).await, ["ns/a"]);
    assert_eq!(kit.list(&all()).await.total, Some(1));
    assert_eq!(kit.names(&ListQuery { at: Some(first), ..all() }).await, ["ns/a"]);
    assert_eq!(kit.data(&a, Some(first)).await.as_deref(), Some("one"));
    let mut watch = kit.watch(everything(), first).await;
    let seen = next_seen(&mut watch, 3).await;
    assert_eq!(seen, [modified("a", "two"), added("b", ""), deleted("b", "")]);
}

pub(super) async fn revisions_go_on_after_reopening(factory: Factory) {
    let mut kit = Kit::new(&factory).await;
    kit.write(object("ns/a").create()).await;
    let gone = kit.write(object("ns/a").remove()).await.revision;
    kit.store.compact(gone).await.expect("it compacts");
    let Some(store) = reopened(&kit).await else { return };
    kit.store = store;
    let mut watch = kit.watch(everything(), gone).await;
    assert_eq!(kit.write(object("ns/b").create()).await.revision, gone.next());
    assert_eq!(next_seen(&mut watch, 1).await, [added("b", "")]);
}

pub(super) async fn a_closed_store_is_unavailable(factory: Factory) {
    let kit = Kit::new(&factory).await;
    kit.write(object("ns/a").create()).await;
    kit.store.close().await;
    kit.store.close().await;
    let unavailable = |error: Error| assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    unavailable(kit.refused(object("ns/b").create()).await);
    unavailable(kit.store.list(&all()).await.expect_err("it is closed"));
    unavailable(kit.store.get(&object("ns/a").key(), None).await.expect_err("it is closed"));
    unavailable(kit.store.clock().await.expect_err("it is closed"));
}

pub(super) async fn queued_writes_are_committed_before_closing(factory: Factory) {
    let mut kit = Kit::with(&factory, |options| options.batch_writes = 3).await;
    let mut writing = Vec::new();
    for n in 0..20 {
        let store = kit.store.clone();
        let mut write =
            Box::pin(async move { store.write(vec![object(&format!("ns/o{n:02}")).create()]).await });
        // The first poll queues the write.
        if let Poll::Ready(outcome) = futures::poll!(&mut write) {
            outcome.expect("the store is open");
        } else {
            writing.push(write);
        }
    }
    let reopened = reopened(&kit).await;
    kit.store.close().await;
    for outcome in futures::future::join_all(writing).await {
        outcome.expect("it was queued before the store was closed");
    }
    if let Some(store) = reopened {
        kit.store = store;
        assert_eq!(kit.names(&all()).await.len(), 20);
    }
}
