//! The cost of watches for writers: the same load with and without them, in turns.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use store::Store;
use tokio::task::JoinSet;

use super::writes::creates;
use crate::args::Sizes;
use crate::database::TestBed;
use crate::figure::{Figure, Goal, Unit, show};
use crate::objects::Objects;
use crate::report::Outcome;
use crate::stats::median;

/// The number of watches.
const WATCHERS: usize = 500;

/// The minimum interval at which a slow watch reads.
const SLOW: Duration = Duration::from_secs(1);

/// The machine's speed varies within seconds, so turns are short and many.
const TURNS_PER_ROUND: usize = 3;

/// The behaviour of the watches.
#[derive(Clone, Copy, Debug)]
pub enum Watchers {
    /// No write matches them.
    Idle,
    /// Every write matches them, but they read rarely.
    Slow,
}

/// The lost throughput in per cent.
pub async fn loss(bed: &TestBed, writers: usize, watchers: Watchers, sizes: Sizes) -> Result<Outcome> {
    let objects = Arc::new(Objects::new(&format!("{watchers:?}-{writers}")));
    let stretch = sizes.stretch * 2 / 5;
    let (mut alone, mut beside, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    creates(&bed.store, &objects, writers, stretch / 2).await?;
    for _ in 0..sizes.rounds * TURNS_PER_ROUND {
        let without = creates(&bed.store, &objects, writers, stretch).await?;
        let mut tasks = watch(&bed.store, &objects, watchers).await?;
        let with = creates(&bed.store, &objects, writers, stretch).await?;
        tasks.shutdown().await;
        losses.push((1.0 - with / without) * 100.0);
        alone.push(without);
        beside.push(with);
    }
    let detail =
        format!("{} instead of {}", show(median(beside)?, Unit::Rate), show(median(alone)?, Unit::Rate));
    Ok(Outcome::of(Figure::percent(median(losses)?).with(detail)).goal(Goal::Below(10.0)))
}

async fn watch(store: &Store, objects: &Objects, watchers: Watchers) -> Result<JoinSet<()>> {
    let from = store.clock().await?.current;
    let mut tasks = JoinSet::new();
    for number in 0..WATCHERS {
        let scope = match watchers {
            Watchers::Idle => objects.idle_watch(number),
            Watchers::Slow => objects.watch(),
        };
        let mut watch = store.watch(scope, from).await?;
        tasks.spawn(async move {
            if matches!(watchers, Watchers::Slow) {
                // Spreads their reads over the interval.
                tokio::time::sleep(SLOW * number as u32 / WATCHERS as u32).await;
            }
            while watch.next().await.is_ok() {
                tokio::time::sleep(SLOW).await;
            }
        });
    }
    Ok(tasks)
}
