//! Watches over the API: fan-out to a thousand clients, lag, and memory of idle watches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::client::{Connection, text_of};
use super::requests::{CONFIG_MAPS, OBJECTS, create, create_range};
use super::{Client, Server};
use crate::args::Sizes;
use crate::figure::{Figure, Goal, Unit, show};
use crate::machine;
use crate::raw::tls::RawServer;
use crate::report::Outcome;
use crate::stats::Latencies;

/// Kubernetes' limit of streams per connection.
const WATCHES_PER_CONNECTION: usize = 100;

/// Concurrent requests while events are produced.
const IN_FLIGHT: usize = 16;

/// Divides the number of events: each is a kilobyte for each of a thousand clients.
const EVENTS_PART: usize = 5;

/// The pause between two writes of a lag measure.
const PAUSE: Duration = Duration::from_millis(1);

/// The time after which all watches are established.
const SETTLE: Duration = Duration::from_secs(1);

async fn open(connection: &Connection, query: &str) -> Result<Incoming> {
    Ok(connection.send(Method::GET, &format!("{OBJECTS}?watch=true{query}"), Bytes::new()).await?.into_body())
}

/// The current resource version, to watch from.
async fn now(connection: &Connection) -> Result<String> {
    let page = connection.get(&format!("{OBJECTS}?limit=1")).await?;
    // The list's own resource version may come before or after that of its only object: it is the larger one.
    let first = text_of(&page, "resourceVersion").and_then(|text| text.parse::<u64>().ok());
    let mark = b"\"resourceVersion\":\"";
    let last = page.windows(mark.len()).rposition(|window| window == mark);
    let last =
        last.and_then(|at| text_of(&page[at..], "resourceVersion")).and_then(|text| text.parse::<u64>().ok());
    Ok(first.max(last).context("the list has no resourceVersion")?.to_string())
}

/// The server memory of a thousand idle watches.
pub async fn memory(server: &Server, sizes: Sizes) -> Result<Outcome> {
    let connections = sizes.watchers.div_ceil(WATCHES_PER_CONNECTION);
    let client = Client::connect(&server.endpoint, connections).await?;
    let from = now(client.connection()).await?;
    tokio::time::sleep(SETTLE).await;
    let resident = || server.pids().into_iter().map(machine::resident).sum::<Result<f64>>();
    let before = resident()?;
    let mut open_watches = Vec::new();
    for number in 0..sizes.watchers {
        let query = format!("&resourceVersion={from}&labelSelector=app%3Dother-{number}");
        open_watches.push(open(client.connection(), &query).await?);
    }
    tokio::time::sleep(SETTLE).await;
    let each = (resident()? - before) / open_watches.len() as f64;
    Ok(Outcome::of(Figure::bytes(each).with(format!("over {connections} connections")))
        .goal(Goal::Below(16_384.0)))
}

/// The time from the acknowledgement of a create to its event at a client of the same or of another server.
pub async fn lag(writer: &Server, reader: &Server, sizes: Sizes) -> Result<Outcome> {
    let writing = Client::connect(&writer.endpoint, 1).await?;
    let reading = Client::connect(&reader.endpoint, 1).await?;
    let prefix = format!(
        "lag-{}",
        reader.pids().first().copied().unwrap_or_default() ^ u32::from(std::ptr::eq(writer, reader))
    );
    let from = now(writing.connection()).await?;
    let body = open(reading.connection(), &format!("&resourceVersion={from}")).await?;
    let count = sizes.lags / 2;
    let mut tasks = JoinSet::new();
    tasks.spawn(arrivals(body, count));
    let mut acknowledged = Vec::new();
    for number in 0..count {
        tokio::time::sleep(PAUSE).await;
        let answer = create(writing.connection(), &format!("{prefix}-{number}")).await?;
        let now = Instant::now();
        let version = text_of(&answer, "resourceVersion").context("the answer has no resourceVersion")?;
        acknowledged.push((version.to_owned(), now));
    }
    let seen = tasks.join_next().await.context("the watch is gone")???;
    let lag = |(version, now): &(String, Instant)| {
        seen.get(version).map(|seen| seen.saturating_duration_since(*now)).context("an event was lost")
    };
    let latencies: Latencies = acknowledged.iter().map(lag).collect::<Result<_>>()?;
    let goal = if std::ptr::eq(writer, reader) { 0.02 } else { 0.05 };
    let figure = Figure::time(latencies.percentile(99));
    Ok(Outcome::of(figure.with(format!("p50 {}", show(latencies.median(), Unit::Time))))
        .goal(Goal::Below(goal)))
}

/// The arrival time of each resource version.
async fn arrivals(mut body: Incoming, count: usize) -> Result<HashMap<String, Instant>> {
    let mut seen = HashMap::new();
    let mut rest = BytesMut::new();
    while seen.len() < count {
        let frame = body.frame().await.context("the watch ended")??;
        let now = Instant::now();
        let Ok(data) = frame.into_data() else { continue };
        rest.extend_from_slice(&data);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = rest.split_to(end + 1);
            let version = text_of(&line, "resourceVersion").context("an event has no resourceVersion")?;
            seen.insert(version.to_owned(), now);
        }
    }
    Ok(seen)
}

/// Every client receives every event.
pub async fn fan_out(server: &Server, raw: &RawServer, sizes: Sizes) -> Result<Outcome> {
    let events = (sizes.events / EVENTS_PART).max(10);
    let connections = sizes.watchers.div_ceil(WATCHES_PER_CONNECTION);
    let client = Client::connect(&server.endpoint, connections).await?;
    let writing = Client::connect(&server.endpoint, 2).await?;
    let from = now(writing.connection()).await?;
    let ready = Arc::new(Barrier::new(sizes.watchers + 1));
    let mut tasks = JoinSet::new();
    for _ in 0..sizes.watchers {
        let body = open(client.connection(), &format!("&resourceVersion={from}")).await?;
        tasks.spawn(count_events(body, events, Arc::clone(&ready)));
    }
    ready.wait().await;
    let before = machine::cpu_seconds_of(&server.pids())?;
    let begin = Instant::now();
    create_range(&writing, CONFIG_MAPS, 0..events, IN_FLIGHT).await?;
    let mut bytes = 0;
    while let Some(received) = tasks.join_next().await {
        bytes += received??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let delivered = (events * sizes.watchers) as f64;
    let each = show((machine::cpu_seconds_of(&server.pids())? - before) / delivered, Unit::Time);
    let limit = download(raw, connections, sizes.watchers, bytes / sizes.watchers).await?;
    let limit = Figure::rate(delivered / limit);
    let detail = format!(
        "{} per second, server's processor time {each} each",
        show(bytes as f64 / seconds, Unit::Bytes)
    );
    Ok(Outcome::of(Figure::rate(delivered / seconds).with(detail))
        .beside(limit, "the same bytes as raw TLS answers")
        .goal(Goal::AtLeast(500_000.0)))
}

/// The bytes of a watch up to this number of events.
async fn count_events(mut body: Incoming, events: usize, ready: Arc<Barrier>) -> Result<usize> {
    ready.wait().await;
    let (mut seen, mut bytes) = (0, 0);
    while seen < events {
        let frame = body.frame().await.context("the watch ended")??;
        if let Some(data) = frame.data_ref() {
            bytes += data.len();
            seen += data.iter().filter(|byte| **byte == b'\n').count();
        }
    }
    ensure!(seen == events, "{seen} events came, not {events}");
    Ok(bytes)
}

/// Seconds to transfer the same bytes over as many streams from a server that only sends.
async fn download(raw: &RawServer, connections: usize, streams: usize, bytes: usize) -> Result<f64> {
    let client = Client::connect(&raw.endpoint, connections).await?;
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..streams {
        let connection = client.connection().clone();
        tasks.spawn(async move { connection.receive(&format!("/bytes/{bytes}")).await.map(|_| ()) });
    }
    while let Some(received) = tasks.join_next().await {
        received??;
    }
    Ok(begin.elapsed().as_secs_f64())
}
