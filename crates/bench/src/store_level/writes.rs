//! Creates and updates, by one writer and by many.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use store::{Precondition, Store, Write};
use tokio::task::JoinSet;

use crate::args::Sizes;
use crate::database::{POSTGRES, SQLITE_FILE, TestBed};
use crate::figure::{Figure, Goal, Unit, show};
use crate::machine;
use crate::objects::Objects;
use crate::report::{Engine, Outcome};
use crate::stats::{Latencies, in_turns, latencies_in_turns};

/// One writer that waits for each write.
pub async fn single(bed: &TestBed, sizes: Sizes) -> Result<Outcome> {
    let objects = Objects::new("single");
    let (limit, own) = latencies_in_turns(
        sizes.rounds,
        async || bed.raw.commits(objects.size(), sizes.stretch).await,
        async || one_by_one(&bed.store, &objects, sizes.stretch).await,
    )
    .await?;
    Ok(Outcome::of(described(&own))
        .beside(described(&limit), "one raw row per commit")
        .goal(Goal::LimitPlus(0.000_5)))
}

/// The median as the figure, with tail and rate as detail.
pub fn described(latencies: &Latencies) -> Figure {
    let tail = show(latencies.percentile(99), Unit::Time);
    let rate = show(latencies.per_second(), Unit::Rate);
    Figure::time(latencies.median()).with(format!("p99 {tail}, {rate}"))
}

async fn one_by_one(store: &Store, objects: &Objects, stretch: Duration) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    let begin = Instant::now();
    while begin.elapsed() < stretch {
        let write = objects.create();
        let started = Instant::now();
        store.write(vec![write]).await?;
        latencies.push(started.elapsed());
    }
    Ok(latencies)
}

/// Many writers, each of which waits for its write.
pub async fn concurrent(bed: &TestBed, engine: Engine, writers: usize, sizes: Sizes) -> Result<Outcome> {
    let objects = Arc::new(Objects::new(&format!("by{writers}")));
    let mut cost = Cost::default();
    let (limit, own) = in_turns(
        sizes.rounds,
        async || bed.raw.batches(writers, objects.size(), sizes.stretch).await,
        async || cost.of(creates(&bed.store, &objects, writers, sizes.stretch)).await,
    )
    .await?;
    Ok(Outcome::of(Figure::rate(own).with(cost.to_string()))
        .beside(Figure::rate(limit), "raw rows, as many per commit as there are writers")
        .goal(durable_writes(engine)))
}

/// Processor time of this process per write. It is more reliable than the rate while other programs use the
/// processor.
#[derive(Default)]
struct Cost {
    seconds: f64,
    writes: f64,
}

impl Cost {
    /// Measures the processor time of some writes, whose rate is known afterwards.
    async fn of(&mut self, writing: impl Future<Output = Result<f64>>) -> Result<f64> {
        let pid = std::process::id();
        let (before, begin) = (machine::cpu_seconds(pid)?, Instant::now());
        let rate = writing.await?;
        self.seconds += machine::cpu_seconds(pid)? - before;
        self.writes += rate * begin.elapsed().as_secs_f64();
        Ok(rate)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "own processor time {} each", show(self.seconds / self.writes, Unit::Time))
    }
}

/// The goal for ordered, durable writes.
fn durable_writes(engine: Engine) -> Goal {
    match engine {
        POSTGRES => Goal::AtLeast(20_000.0),
        SQLITE_FILE => Goal::AtLeast(10_000.0),
        _ => Goal::None,
    }
}

/// Creates per second with this number of writers.
pub async fn creates(
    store: &Store,
    objects: &Arc<Objects>,
    writers: usize,
    stretch: Duration,
) -> Result<f64> {
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for _ in 0..writers {
        let (store, objects) = (store.clone(), Arc::clone(objects));
        tasks.spawn(async move {
            let mut written = 0_usize;
            while begin.elapsed() < stretch {
                store.write(vec![objects.create()]).await?;
                written += 1;
            }
            Ok(written)
        });
    }
    rate(tasks, begin).await
}

/// Many writers, each of which updates its own object with a revision precondition.
pub async fn updates(bed: &TestBed, engine: Engine, writers: usize, sizes: Sizes) -> Result<Outcome> {
    let objects = Arc::new(Objects::new(&format!("changed-by{writers}")));
    let mut cost = Cost::default();
    let (limit, own) = in_turns(
        sizes.rounds,
        async || bed.raw.batches(writers, objects.size(), sizes.stretch).await,
        async || cost.of(swaps(&bed.store, &objects, writers, sizes.stretch)).await,
    )
    .await?;
    Ok(Outcome::of(Figure::rate(own).with(cost.to_string()))
        .beside(Figure::rate(limit), "raw rows, as many per commit as there are writers")
        .goal(durable_writes(engine)))
}

async fn swaps(store: &Store, objects: &Arc<Objects>, writers: usize, stretch: Duration) -> Result<f64> {
    let creates: Vec<_> = (0..writers).map(|_| objects.create()).collect();
    let keys: Vec<_> = creates.iter().map(|create| create.key().clone()).collect();
    let created = store.write(creates).await?;
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for (key, mut revision) in keys.into_iter().zip(created.into_iter().map(|written| written.revision)) {
        let (store, objects) = (store.clone(), Arc::clone(objects));
        tasks.spawn(async move {
            let mut written = 0_usize;
            while begin.elapsed() < stretch {
                let expect = Precondition { revision: Some(revision), uid: None };
                revision = write(&store, objects.update(&key, expect, written)).await?.revision;
                written += 1;
            }
            Ok(written)
        });
    }
    rate(tasks, begin).await
}

async fn write(store: &Store, write: Write) -> Result<store::Written> {
    store.write(vec![write]).await?.pop().context("the store returned no result for a write")
}

async fn rate(mut tasks: JoinSet<Result<usize>>, begin: Instant) -> Result<f64> {
    let mut written = 0;
    while let Some(count) = tasks.join_next().await {
        written += count??;
    }
    Ok(written as f64 / begin.elapsed().as_secs_f64())
}
