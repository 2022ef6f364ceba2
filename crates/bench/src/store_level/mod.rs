//! The store, called directly: one process, no network except PostgreSQL's.

mod lag;
mod lists;
mod loss;
mod selections;
mod watches;
mod writes;

use anyhow::Result;

use crate::args::Sizes;
use crate::database::{POSTGRES, PostgresServer, SQLITE_FILE, SQLITE_MEMORY, TestBed};
use crate::figure::sized;
use crate::report::{Engine, Report, progress};

const MEMORY: &str = "store memory per idle watcher";
const CREATE: [(&str, usize); 3] =
    [("store create, 1 writer", 1), ("store create, 64 writers", 64), ("store create, 256 writers", 256)];
const UPDATE: [(&str, usize); 2] = [
    ("store update with compare-and-swap, 64 writers", 64),
    ("store update with compare-and-swap, 256 writers", 256),
];
const PAGES: &str = "store list of {n}, pages of 500";
const STREAM: &str = "store list of {n}, one stream";
const BY_LABEL: &str = "store select 1 of {n} by label";
const BY_FIELD: &str = "store select 1 of {n} by field";
const FAN_OUT: &str = "store watch fan-out to 1,000 watchers";
const LOSS: [(&str, usize, loss::Watchers); 4] = [
    ("store loss of 1 writer beside 500 idle watchers", 1, loss::Watchers::Idle),
    ("store loss of 1 writer beside 500 slow watchers", 1, loss::Watchers::Slow),
    ("store loss of 64 writers beside 500 idle watchers", 64, loss::Watchers::Idle),
    ("store loss of 64 writers beside 500 slow watchers", 64, loss::Watchers::Slow),
];
const LAG: &str = "store watch lag, p99";
const LAG_ACROSS: &str = "store watch lag across two stores, p99";

/// Runs all selected measures on every engine.
pub async fn run(report: &mut Report) {
    for engine in [SQLITE_MEMORY, SQLITE_FILE, POSTGRES] {
        if !report.wants_any(&all_measures(report.sizes), engine) {
            continue;
        }
        let started = if engine == POSTGRES {
            PostgresServer::start(report.args.postgres.as_deref()).map(Some)
        } else {
            Ok(None)
        };
        match started {
            Ok(server) => on_engine(report, engine, server.as_ref()).await,
            Err(error) => report.section("store", engine, Err(error)),
        }
    }
}

fn all_measures(sizes: Sizes) -> Vec<String> {
    let single = [MEMORY, FAN_OUT, LAG, LAG_ACROSS];
    let writes = CREATE.iter().chain(&UPDATE).map(|(measure, _)| *measure);
    let names = single.into_iter().chain(writes).chain(LOSS.iter().map(|(measure, ..)| *measure));
    names.map(str::to_owned).chain(lists_of(sizes)).chain(selections_of(sizes)).collect()
}

fn lists_of(sizes: Sizes) -> [String; 2] {
    [PAGES, STREAM].map(|name| sized(name, sizes.list))
}

fn selections_of(sizes: Sizes) -> [String; 2] {
    [BY_LABEL, BY_FIELD].map(|name| sized(name, sizes.select))
}

async fn on_engine(report: &mut Report, engine: Engine, server: Option<&PostgresServer>) {
    if engine == SQLITE_MEMORY {
        // The memory of a watch does not depend on the engine. It is measured first, because memory that
        // other measures have freed would hide it.
        report.measure(MEMORY, engine, watches::memory(report.sizes)).await;
    }
    let done = writing(report, engine, server).await;
    report.section("store writes", engine, done);
    let done = watching(report, engine, server).await;
    report.section("store watches", engine, done);
    let done = listing(report, engine, server).await;
    report.section("store lists", engine, done);
    let done = selecting(report, engine, server).await;
    report.section("store selections", engine, done);
}

async fn writing(report: &mut Report, engine: Engine, server: Option<&PostgresServer>) -> Result<()> {
    let measures: Vec<_> = CREATE.iter().chain(&UPDATE).map(|(measure, _)| *measure).collect();
    if !report.wants_any(&measures, engine) {
        return Ok(());
    }
    let sizes = report.sizes;
    let bed = TestBed::new(engine, server).await?;
    for (measure, writers) in CREATE {
        if writers == 1 {
            report.measure(measure, engine, writes::single(&bed, sizes)).await;
        } else {
            report.measure(measure, engine, writes::concurrent(&bed, engine, writers, sizes)).await;
        }
    }
    for (measure, writers) in UPDATE {
        report.measure(measure, engine, writes::updates(&bed, engine, writers, sizes)).await;
    }
    bed.close().await
}

async fn watching(report: &mut Report, engine: Engine, server: Option<&PostgresServer>) -> Result<()> {
    let mut measures = vec![FAN_OUT, LAG, LAG_ACROSS];
    measures.extend(LOSS.iter().map(|(measure, ..)| *measure));
    if !report.wants_any(&measures, engine) {
        return Ok(());
    }
    let sizes = report.sizes;
    let bed = TestBed::new(engine, server).await?;
    report.measure(LAG, engine, lag::within(&bed, sizes)).await;
    if engine == POSTGRES {
        report.measure(LAG_ACROSS, engine, lag::across(&bed, sizes)).await;
    }
    report.measure(FAN_OUT, engine, watches::fan_out(&bed, sizes)).await;
    for (measure, writers, watchers) in LOSS {
        report.measure(measure, engine, loss::loss(&bed, writers, watchers, sizes)).await;
    }
    bed.close().await
}

async fn listing(report: &mut Report, engine: Engine, server: Option<&PostgresServer>) -> Result<()> {
    let sizes = report.sizes;
    let [pages, stream] = lists_of(sizes);
    if !report.wants_any(&[&pages, &stream], engine) {
        return Ok(());
    }
    let bed = TestBed::new(engine, server).await?;
    progress(&format!("         writing {} objects on {}", sizes.list, engine.name));
    let objects = lists::fill(&bed, sizes.list).await?;
    report.measure(&pages, engine, lists::pages(&bed, &objects, sizes)).await;
    report.measure(&stream, engine, lists::stream(&bed, &objects, sizes)).await;
    bed.close().await
}

async fn selecting(report: &mut Report, engine: Engine, server: Option<&PostgresServer>) -> Result<()> {
    // A million objects in memory would show nothing about the file, and take a gigabyte.
    let sensible = engine != SQLITE_MEMORY || report.args.quick;
    let sizes = report.sizes;
    let [by_label, by_field] = selections_of(sizes);
    if !sensible || !report.wants_any(&[&by_label, &by_field], engine) {
        return Ok(());
    }
    let bed = TestBed::new(engine, server).await?;
    progress(&format!("         writing {} objects on {}", sizes.select, engine.name));
    let objects = selections::fill(&bed, sizes.select).await?;
    report.measure(&by_label, engine, selections::by_label(&bed, &objects)).await;
    report.measure(&by_field, engine, selections::by_field(&bed, &objects)).await;
    bed.close().await
}
