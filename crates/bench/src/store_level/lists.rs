//! Lists of all objects, in pages and as one stream.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use store::{Position, Store, Write};
use tokio::task::JoinSet;

use crate::args::Sizes;
use crate::database::TestBed;
use crate::figure::{Figure, Goal, Unit, show};
use crate::machine;
use crate::objects::Objects;
use crate::report::Outcome;
use crate::stats::median;

/// Writes per transaction while objects are created.
const TRANSACTION: usize = 1000;

/// Concurrent transactions, so that one is built while another commits.
const CONCURRENT: usize = 4;

/// Fills the store and the raw table.
pub async fn fill(bed: &TestBed, count: usize) -> Result<Objects> {
    let objects = Arc::new(Objects::new("listed"));
    let make = Arc::clone(&objects);
    create(&bed.store, count, move |_| make.create()).await?;
    bed.raw.fill(count, objects.size()).await?;
    Ok(Arc::into_inner(objects).unwrap_or_else(|| Objects::new("listed")))
}

/// Creates objects in large transactions.
pub async fn create(
    store: &Store,
    count: usize,
    make: impl Fn(usize) -> Write + Clone + Send + 'static,
) -> Result<()> {
    let mut tasks = JoinSet::new();
    for first in (0..count).step_by(TRANSACTION) {
        if tasks.len() == CONCURRENT {
            tasks.join_next().await.transpose()?.transpose()?;
        }
        let (store, make) = (store.clone(), make.clone());
        tasks.spawn(async move {
            let writes = (first..count.min(first + TRANSACTION)).map(make).collect();
            store.write(writes).await.map(drop)
        });
    }
    while let Some(written) = tasks.join_next().await {
        written??;
    }
    Ok(())
}

/// Page by page at the revision of the first page, as a client with `limit` and `continue` does.
pub async fn pages(bed: &TestBed, objects: &Objects, sizes: Sizes) -> Result<Outcome> {
    let (limit, own) = beside_raw(bed, objects, 500, sizes).await?;
    Ok(Outcome::of(Figure::time(own))
        .beside(Figure::time(limit), "raw rows read in order")
        .goal(Goal::Below(0.5)))
}

/// With the largest pages of the store.
pub async fn stream(bed: &TestBed, objects: &Objects, sizes: Sizes) -> Result<Outcome> {
    let pid = std::process::id();
    machine::forget_peak(pid)?;
    let before = machine::resident(pid)?;
    let (limit, own) = beside_raw(bed, objects, usize::MAX, sizes).await?;
    let growth = show(machine::peak(pid)? - before, Unit::Bytes);
    Ok(Outcome::of(Figure::time(own).with(format!("memory +{growth}")))
        .beside(Figure::time(limit), "raw rows read in order"))
}

/// Seconds for the raw table and for the store.
async fn beside_raw(bed: &TestBed, objects: &Objects, page: usize, sizes: Sizes) -> Result<(f64, f64)> {
    let (mut limits, mut own) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let started = Instant::now();
        let bytes = bed.raw.read(sizes.list).await?;
        limits.push(started.elapsed().as_secs_f64());
        ensure!(bytes == sizes.list * objects.size(), "the raw table is incomplete");
        let started = Instant::now();
        let listed = list(&bed.store, objects, page).await?;
        own.push(started.elapsed().as_secs_f64());
        ensure!(listed == sizes.list, "{listed} objects were listed, not {}", sizes.list);
    }
    Ok((median(limits)?, median(own)?))
}

async fn list(store: &Store, objects: &Objects, page: usize) -> Result<usize> {
    let mut query = objects.list(page);
    let mut listed = 0;
    loop {
        let page = store.list(&query).await?;
        listed += page.items.len();
        let Some(last) = page.items.last().filter(|_| page.more) else { return Ok(listed) };
        query.at = Some(page.revision);
        query.after = Some(Position { namespace: last.key.namespace.clone(), name: last.key.name.clone() });
    }
}
