//! Many watches: the cost of delivering an event, and the memory of an idle watch.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use bytes::Bytes;
use store::{Store, Watch, Write};
use tokio::task::JoinSet;

use crate::args::Sizes;
use crate::database::{SQLITE_MEMORY, TestBed};
use crate::figure::{Figure, Goal, Unit, show};
use crate::machine;
use crate::objects::Objects;
use crate::raw::wake;
use crate::report::Outcome;
use crate::stats::in_turns;

/// Writers that produce the events.
const WRITERS: usize = 64;

/// Every watch receives every event in a shared encoding.
pub async fn fan_out(bed: &TestBed, sizes: Sizes) -> Result<Outcome> {
    let objects = Arc::new(Objects::new("fan-out"));
    let mut writes_per_second = 0.0;
    let (limit, own) = in_turns(
        sizes.rounds,
        async || wake::broadcast(sizes.watchers, sizes.events).await,
        async || {
            let seconds = deliver(&bed.store, &objects, sizes).await?;
            writes_per_second = sizes.events as f64 / seconds;
            Ok((sizes.events * sizes.watchers) as f64 / seconds)
        },
    )
    .await?;
    let writes = show(writes_per_second, Unit::Rate);
    Ok(Outcome::of(Figure::rate(own).with(format!("of {writes} durable writes")))
        .beside(Figure::rate(limit), "a plain broadcast channel")
        .goal(Goal::AtLeast(500_000.0)))
}

/// Seconds from the first write until every watch has received every event.
async fn deliver(store: &Store, objects: &Arc<Objects>, sizes: Sizes) -> Result<f64> {
    let from = store.clock().await?.current;
    let mut tasks: JoinSet<Result<()>> = JoinSet::new();
    for _ in 0..sizes.watchers {
        let watch = store.watch(objects.watch(), from).await?;
        tasks.spawn(receive(watch, sizes.events));
    }
    let begin = Instant::now();
    for writer in 0..WRITERS {
        let (store, objects) = (store.clone(), Arc::clone(objects));
        tasks.spawn(async move {
            for _ in (writer..sizes.events).step_by(WRITERS) {
                store.write(vec![objects.create()]).await?;
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(begin.elapsed().as_secs_f64())
}

async fn receive(mut watch: Watch, events: usize) -> Result<()> {
    let mut received = 0;
    while received < events {
        for event in watch.next().await? {
            // One encoding for all, as in the API server.
            let frame = event.change.frame(0, |change| Bytes::clone(&change.value));
            ensure!(!frame.is_empty(), "an event is empty");
            received += 1;
        }
    }
    Ok(())
}

/// The process memory of a thousand idle watches.
pub async fn memory(sizes: Sizes) -> Result<Outcome> {
    let bed = TestBed::new(SQLITE_MEMORY, None).await?;
    let objects = Objects::new("idle");
    let from =
        bed.store.write(vec![objects.create()]).await?.first().map_or_else(Default::default, |w| w.revision);
    let pid = std::process::id();
    let before = machine::resident(pid)?;
    let mut tasks = JoinSet::new();
    for number in 0..sizes.watchers {
        let mut watch = bed.store.watch(objects.idle_watch(number), from).await?;
        tasks.spawn(async move { watch.next().await.map(|events| events.len()) });
    }
    // A write that matches none of them shows that all are registered.
    bed.store.write(vec![objects.create() as Write]).await?;
    let each = (machine::resident(pid)? - before) / sizes.watchers as f64;
    ensure!(tasks.try_join_next().is_none(), "a watch that should be idle was woken");
    tasks.shutdown().await;
    bed.close().await?;
    Ok(Outcome::of(Figure::bytes(each)).goal(Goal::Below(16_384.0)))
}
