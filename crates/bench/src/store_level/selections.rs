//! Selection of one object among very many, by label and by field.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use model::selector::Target;
use store::ListQuery;

use super::lists;
use crate::database::TestBed;
use crate::figure::{Figure, Goal, Unit, show};
use crate::objects::Objects;
use crate::report::Outcome;
use crate::stats::Latencies;

/// Small, so that a million objects are created within a minute.
const PAYLOAD: usize = 100;

/// The number of selections.
const TRIES: usize = 500;

const LABEL: &str = "picked";
const FIELD: &str = "spec.picked";

/// Fills the store; only the object in the middle matches.
pub async fn fill(bed: &TestBed, count: usize) -> Result<Objects> {
    let objects = Arc::new(Objects::sized("selected", PAYLOAD));
    let make = Arc::clone(&objects);
    lists::create(&bed.store, count, move |number| {
        let value = if number == count / 2 { "yes" } else { "no" };
        let pair = |key: &str| vec![(key.to_owned(), value.to_owned())];
        make.create_with(number as u64, pair(LABEL), pair(FIELD))
    })
    .await?;
    bed.raw.fill(count.min(100_000), objects.size()).await?;
    Ok(Arc::into_inner(objects).unwrap_or_else(|| Objects::new("selected")))
}

/// Selects by a label.
pub async fn by_label(bed: &TestBed, objects: &Objects) -> Result<Outcome> {
    one(bed, &objects.select(Target::Label, LABEL, "yes")).await
}

/// Selects by a field.
pub async fn by_field(bed: &TestBed, objects: &Objects) -> Result<Outcome> {
    one(bed, &objects.select(Target::Field, FIELD, "yes")).await
}

async fn one(bed: &TestBed, query: &ListQuery) -> Result<Outcome> {
    let mut latencies = Latencies::default();
    for _ in 0..TRIES {
        let started = Instant::now();
        let page = bed.store.list(query).await?;
        latencies.push(started.elapsed());
        ensure!(page.items.len() == 1 && !page.more, "{} objects were found, not one", page.items.len());
    }
    let limit = bed.raw.look_ups(TRIES).await?;
    let tail = show(latencies.percentile(99), Unit::Time);
    Ok(Outcome::of(Figure::time(latencies.median()).with(format!("p99 {tail}")))
        .beside(Figure::time(limit.median()), "one raw row by its number")
        .goal(Goal::Below(0.001)))
}
