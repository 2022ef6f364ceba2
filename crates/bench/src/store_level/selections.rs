//! One object among very many, found by what it says.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use model::selector::Target;
use store::ListQuery;

use super::lists;
use crate::database::Bed;
use crate::figure::{Figure, Goal, Unit, show};
use crate::objects::Objects;
use crate::report::Outcome;
use crate::stats::Latencies;

/// Small, so that a million are made within a minute.
const PAYLOAD: usize = 100;

/// How often it is looked for.
const TRIES: usize = 500;

const LABEL: &str = "picked";
const FIELD: &str = "spec.picked";

/// Fills the store; the object in the middle is the one.
pub async fn fill(bed: &Bed, count: usize) -> Result<Objects> {
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

/// By a label.
pub async fn by_label(bed: &Bed, objects: &Objects) -> Result<Outcome> {
    one(bed, &objects.select(Target::Label, LABEL, "yes")).await
}

/// By a field.
pub async fn by_field(bed: &Bed, objects: &Objects) -> Result<Outcome> {
    one(bed, &objects.select(Target::Field, FIELD, "yes")).await
}

async fn one(bed: &Bed, query: &ListQuery) -> Result<Outcome> {
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
