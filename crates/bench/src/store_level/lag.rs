//! Watch lag: the time from the acknowledgement of a write to its event.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use model::Revision;
use store::Store;
use tokio::task::JoinSet;

use crate::args::Sizes;
use crate::database::TestBed;
use crate::figure::{Figure, Goal, Unit, show};
use crate::objects::Objects;
use crate::raw::{postgres, wake};
use crate::report::Outcome;
use crate::stats::Latencies;

/// The pause between two writes: some load, but no queue.
pub const PAUSE: Duration = Duration::from_millis(1);

/// Writer and watch on the same store.
pub async fn within(bed: &TestBed, sizes: Sizes) -> Result<Outcome> {
    let own = lag(&bed.store, &bed.store, &Objects::new("lag"), sizes.lags).await?;
    let limit = wake::one_task(sizes.lags, PAUSE).await?;
    Ok(Outcome::of(described(&own))
        .beside(described(&limit), "waking a task of the same process")
        .goal(Goal::Below(0.02)))
}

/// The watch on another store of the same database.
pub async fn across(bed: &TestBed, sizes: Sizes) -> Result<Outcome> {
    let other = bed.second_store().await?;
    let own = lag(&bed.store, &other, &Objects::new("lag-across"), sizes.lags).await?;
    other.close().await;
    let url = bed.url.as_deref().context("only PostgreSQL supports a second store")?;
    let limit = postgres::notifications(url, sizes.lags, PAUSE).await?;
    Ok(Outcome::of(described(&own))
        .beside(described(&limit), "raw NOTIFY to another session")
        .goal(Goal::Below(0.05)))
}

/// The tail as the figure, with the median as detail.
pub fn described(latencies: &Latencies) -> Figure {
    Figure::time(latencies.percentile(99)).with(format!("p50 {}", show(latencies.median(), Unit::Time)))
}

async fn lag(writer: &Store, reader: &Store, objects: &Objects, count: usize) -> Result<Latencies> {
    let first = writer.write(vec![objects.create()]).await?;
    let from = first.first().context("the store returned no result for a write")?.revision;
    let mut watch = reader.watch(objects.watch(), from).await?;
    let mut tasks: JoinSet<Result<HashMap<Revision, Instant>>> = JoinSet::new();
    tasks.spawn(async move {
        let mut seen = HashMap::new();
        while seen.len() < count {
            let events = watch.next().await?;
            let now = Instant::now();
            seen.extend(events.iter().map(|event| (event.change.revision, now)));
        }
        Ok(seen)
    });
    let mut acknowledged = Vec::with_capacity(count);
    for _ in 0..count {
        tokio::time::sleep(PAUSE).await;
        let written = writer.write(vec![objects.create()]).await?;
        let now = Instant::now();
        acknowledged.extend(written.iter().map(|written| (written.revision, now)));
    }
    let seen = tasks.join_next().await.context("the watch is gone")???;
    let lag = |(revision, now): &(Revision, Instant)| {
        seen.get(revision).map(|seen| seen.saturating_duration_since(*now))
    };
    acknowledged.iter().map(lag).map(|lag| lag.context("an event was lost")).collect::<Result<_>>()
}
