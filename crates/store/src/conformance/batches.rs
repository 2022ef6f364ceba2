//! Transactions of several writes, and batches of several transactions.

use tokio::task::JoinSet;

use super::Factory;
use super::kit::*;
use crate::Error;

pub(super) async fn a_transaction_happens_as_a_whole_or_not_at_all(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let (a, b) = (object("ns/a").label("k", "v"), object("ns/b"));
    let before = kit.revision().await;
    let mut watch = kit.watch(everything(), before).await;
    let refused = kit.store.write(vec![a.create(), b.put()]).await.expect_err("b is not there");
    assert_eq!(refused, Error::NotFound { key: b.key() });
    assert_eq!(kit.revision().await, before);
    assert!(kit.names(&all()).await.is_empty());
    assert!(kit.names(&selected(vec![label_is("k", "v")])).await.is_empty());
    let written = kit.store.write(vec![a.create(), b.create()]).await.expect("both are new");
    assert_eq!(written[0].revision.next(), written[1].revision);
    assert_eq!(next_seen(&mut watch, 2).await, [added("a", ""), added("b", "")]);
}

pub(super) async fn writes_of_a_transaction_see_each_other(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    let first = kit.revision().await.next();
    let mut watch = kit.watch(everything(), kit.revision().await).await;
    let writes = vec![
        a.clone().data("one").create(),
        a.clone().data("two").update(at(first)),
        a.clone().data("three").update(at(first.next())),
    ];
    let written = kit.store.write(writes).await.expect("each sees the one before");
    assert_eq!(written.iter().map(|w| data_of(&w.value)).collect::<Vec<_>>(), ["one", "two", "three"]);
    assert_eq!(kit.data(&a, None).await.as_deref(), Some("three"));
    assert_eq!(kit.data(&a, Some(first)).await.as_deref(), Some("one"));
    let seen = next_seen(&mut watch, 3).await;
    assert_eq!(seen, [added("a", "one"), modified("a", "two"), modified("a", "three")]);
    let refused = kit.store.write(vec![a.clone().data("four").put(), a.create()]).await;
    assert_eq!(refused.expect_err("a is there"), Error::AlreadyExists { key: a.key() });
    assert_eq!(kit.data(&a, None).await.as_deref(), Some("three"));
}

pub(super) async fn an_object_can_come_and_go_in_one_transaction(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a").label("k", "v");
    let mut watch = kit.watch(everything(), kit.revision().await).await;
    kit.store.write(vec![a.create(), a.remove(), a.clone().uid("next").create()]).await.expect("in order");
    let seen = next_seen(&mut watch, 3).await;
    assert_eq!(seen, [added("a", ""), deleted("a", ""), added("a", "")]);
    kit.store.write(vec![a.remove(), a.create(), a.remove()]).await.expect("in order");
    let page = kit.list(&all()).await;
    assert_eq!((page.items.len(), page.total), (0, Some(0)));
    assert!(kit.names(&selected(vec![label_is("k", "v")])).await.is_empty());
}

pub(super) async fn a_failed_transaction_does_not_touch_others_of_its_batch(factory: Factory) {
    let kit = Kit::new(&factory).await;
    kit.write(object("ns/taken").create()).await;
    let mut writers = JoinSet::new();
    for writer in 0..40 {
        let store = kit.store.clone();
        writers.spawn(async move {
            let own = object(&format!("ns/w{writer:02}"));
            let fails = writer % 2 == 0;
            let writes =
                if fails { vec![own.create(), object("ns/taken").create()] } else { vec![own.create()] };
            assert_eq!(store.write(writes).await.is_err(), fails);
        });
    }
    writers.join_all().await;
    let names = kit.names(&all()).await;
    assert_eq!(names.len(), 21);
    assert!(names.iter().skip(1).all(|name| !name.ends_with(['0', '2', '4', '6', '8'])), "{names:?}");
}

pub(super) async fn an_empty_transaction_does_nothing(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let before = kit.revision().await;
    assert!(kit.store.write(vec![]).await.expect("nothing can fail").is_empty());
    assert_eq!(kit.revision().await, before);
}

pub(super) async fn a_transaction_larger_than_a_batch_is_committed(factory: Factory) {
    let kit = Kit::with(&factory, |options| {
        options.batch_writes = 4;
        options.batch_bytes = 4096;
    })
    .await;
    let writes = (0..20).map(|n| object(&format!("ns/o{n:02}")).data("x".repeat(1000)).create()).collect();
    assert_eq!(kit.store.write(writes).await.expect("it is committed alone").len(), 20);
    assert_eq!(kit.list(&all()).await.total, Some(20));
}
