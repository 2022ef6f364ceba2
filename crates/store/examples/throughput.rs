//! Rough numbers of the store on a SQLite file: `cargo run --release -p store --example throughput [folder] [objects]`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::selector::{Requirement, Target, Test};
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};
use store::{
    FileOptions, ListQuery, Metrics, Options, Position, Precondition, Sqlite, Store, WatchScope, Write,
};
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder)?;
    for writers in [1, 16, 64, 256] {
        writes(folder.path(), writers, 0).await?;
    }
    for idle in [500, 5000] {
        writes(folder.path(), 64, idle).await?;
    }
    fan_out(folder.path(), 1000, 2000).await?;
    let objects = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    lists(folder.path(), objects).await
}

async fn open(folder: &Path, name: &str) -> Result<Store, Failure> {
    let engine = Sqlite::open(&FileOptions::new(folder.join(name)))?;
    Ok(Store::open(Arc::new(engine), Options::default(), &Metrics::unregistered()).await?)
}

/// CPU time of this process so far, on Linux. On a shared machine it is steadier than wall-clock time.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

fn resource() -> Resource {
    Resource::new("", "configmaps")
}

fn body(name: &str, version: u64) -> Encoded {
    let data = format!("{version:0>900}");
    let object = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": data}});
    Encoded::new(object.as_object().expect("the literal is an object"))
}

fn create(namespace: &str, name: &str, labels: Vec<(String, String)>) -> Write {
    Write::Create {
        key: ObjectKey::new(&resource(), namespace, name),
        uid: Uid(format!("uid-{name}")),
        attributes: Attributes::new(labels, vec![]),
        body: body(name, 0),
    }
}

fn label(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// Each writer creates an object and updates it for a few seconds.
async fn writes(folder: &Path, writers: usize, idle: usize) -> Result<(), Failure> {
    let store = open(folder, &format!("writes-{writers}-{idle}.db")).await?;
    let mut watches = Vec::new();
    for n in 0..idle {
        let selector = if n % 2 == 0 { equals("app", &format!("other-{n}")) } else { Selector::default() };
        let namespace = (n % 2 == 1).then(|| format!("other-{n}"));
        let scope = WatchScope { resource: resource(), namespace, name: None, selector };
        watches.push(store.watch(scope, Revision(1)).await?);
    }
    let mut tasks = JoinSet::new();
    for mut watch in watches {
        tasks.spawn(async move {
            let _ = watch.next().await;
        });
    }
    let (cpu, end) = (cpu(), Instant::now() + Duration::from_secs(4));
    let mut writing = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        writing.spawn(async move { write_until(&store, writer, end).await });
    }
    let started = Instant::now();
    let mut latencies: Vec<Duration> = Vec::new();
    while let Some(done) = writing.join_next().await {
        latencies.extend(done?.map_err(|error| error.to_string())?);
    }
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    let cost = (self::cpu() - cpu).as_micros() / latencies.len() as u128;
    latencies.sort_unstable();
    let at = |part: usize| latencies[latencies.len() * part / 100 - 1];
    let (p50, p99) = (at(50), at(99));
    println!(
        "{writers:>4} writers, {idle:>4} idle watches: {rate:>7.0} writes/s, p50 {p50:?}, p99 {p99:?}, {cost} µs CPU each"
    );
    store.close().await;
    Ok(())
}

async fn write_until(store: &Store, writer: usize, end: Instant) -> Result<Vec<Duration>, store::Error> {
    let name = format!("o-{writer}");
    let mut latencies = Vec::new();
    let mut version = 0;
    while Instant::now() < end {
        version += 1;
        let write = if version == 1 {
            create("ns", &name, vec![label("app", "web")])
        } else {
            Write::Update {
                key: ObjectKey::new(&resource(), "ns", &name),
                expect: Precondition::default(),
                attributes: Attributes::new(vec![label("app", "web")], vec![]),
                body: body(&name, version),
            }
        };
        let started = Instant::now();
        store.write(vec![write]).await?;
        latencies.push(started.elapsed());
    }
    Ok(latencies)
}

/// All watches see all changes.
async fn fan_out(folder: &Path, watchers: usize, changes: usize) -> Result<(), Failure> {
    let store = open(folder, "fan-out.db").await?;
    let mut tasks = JoinSet::new();
    for _ in 0..watchers {
        let scope =
            WatchScope { resource: resource(), namespace: None, name: None, selector: Selector::default() };
        let mut watch = store.watch(scope, Revision(1)).await?;
        tasks.spawn(async move {
            let mut seen = 0;
            while seen < changes {
                let events = watch.next().await?;
                for event in &events {
                    event.change.frame(0, |change| change.value.clone());
                }
                seen += events.len();
            }
            Ok::<(), store::Error>(())
        });
    }
    let started = Instant::now();
    for n in 0..changes / 50 {
        let writes = (0..50).map(|m| create("ns", &format!("o-{n}-{m}"), vec![])).collect();
        store.write(writes).await?;
    }
    let written = started.elapsed();
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let rate = (watchers * changes) as f64 / started.elapsed().as_secs_f64();
    println!("{changes} changes to {watchers} watches: {rate:.0} events/s (written in {written:?})");
    store.close().await;
    Ok(())
}

fn equals(key: &str, value: &str) -> Selector {
    let test = Test::In(vec![value.to_owned()]);
    Selector { requirements: vec![Requirement { target: Target::Label, key: key.to_owned(), test }] }
}

async fn lists(folder: &Path, objects: usize) -> Result<(), Failure> {
    let store = open(folder, "lists.db").await?;
    let (started, before) = (Instant::now(), cpu());
    for chunk in 0..objects / 1000 {
        let one = |n: usize| {
            let number = chunk * 1000 + n;
            let rare = if number == objects / 2 { "one" } else { "many" };
            create(&format!("ns-{}", number % 10), &format!("o-{number}"), vec![label("rare", rare)])
        };
        store.write((0..1000).map(one).collect()).await?;
    }
    let rate = objects as f64 / started.elapsed().as_secs_f64();
    let cost = (cpu() - before).as_micros() / objects as u128;
    println!("{objects} creates in transactions of 1000: {rate:.0}/s, {cost} µs CPU each");
    let base = ListQuery {
        resource: resource(),
        namespace: None,
        selector: Selector::default(),
        at: None,
        after: None,
        limit: 500,
    };
    for (name, selector) in
        [("one in a million", equals("rare", "one")), ("all but one", equals("rare", "many"))]
    {
        for _ in 0..2 {
            let started = Instant::now();
            let page = store.list(&ListQuery { selector: selector.clone(), ..base.clone() }).await?;
            println!("list of {name}: {} objects in {:?}", page.items.len(), started.elapsed());
        }
    }
    let started = Instant::now();
    let mut query = base.clone();
    let mut count = 0;
    while count < 100_000 {
        let page = store.list(&query).await?;
        count += page.items.len();
        query.at = Some(page.revision);
        query.after = page
            .items
            .last()
            .map(|item| Position { namespace: item.key.namespace.clone(), name: item.key.name.clone() });
    }
    println!("{count} objects in pages of 500: {:?}", started.elapsed());
    let key = ObjectKey::new(&resource(), "ns-5", "o-5");
    let (started, before) = (Instant::now(), cpu());
    for _ in 0..100_000 {
        store.get(&key, None).await?;
    }
    println!("get: {:?}, {:?} CPU", started.elapsed() / 100_000, (cpu() - before) / 100_000);
    store.close().await;
    Ok(())
}
