//! Creates and gets, one at a time and concurrently.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use tokio::task::JoinSet;

use super::client::{Connection, JSON};
use super::{Client, Server};
use crate::args::Sizes;
use crate::figure::{Figure, Goal, Unit, show};
use crate::machine;
use crate::objects::{NAMESPACE, create_body};
use crate::raw::tls::RawServer;
use crate::report::Outcome;
use crate::stats::{Latencies, in_turns, latencies_in_turns};

/// Concurrent requests.
const IN_FLIGHT: usize = 64;

/// The connections of concurrent requests.
const CONNECTIONS: usize = 4;

/// The collection of the objects.
pub const OBJECTS: &str = "/api/v1/namespaces/bench/configmaps";

/// The objects to create and read, and their encoding.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The path of the collection.
    pub collection: &'static str,
    /// The media type.
    pub media: &'static str,
    /// The body of a create request for this name.
    pub body: fn(&str) -> Bytes,
    /// The prefix of object names.
    pub prefix: &'static str,
}

/// Objects of one kilobyte that are cheap to validate.
pub const CONFIG_MAPS: Subject =
    Subject { collection: OBJECTS, media: JSON, body: create_body, prefix: "object" };

/// The server and the raw server, with a client for each.
pub struct Bench {
    client: Client,
    raw: Client,
    raw_path: String,
    pids: Vec<u32>,
    subject: Subject,
    names: Arc<AtomicU64>,
    some_object: String,
}

/// Creates the namespace of the objects.
pub async fn create_namespace(server: &Server) -> Result<()> {
    let client = Client::connect(&server.endpoint, 1).await?;
    let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{NAMESPACE}"}}}}"#);
    client.connection().post("/api/v1/namespaces", body.into()).await?;
    Ok(())
}

/// Creates one object.
pub async fn create(connection: &Connection, name: &str) -> Result<Bytes> {
    connection.post(OBJECTS, create_body(name)).await
}

impl Bench {
    /// Measures a server with the namespace and no objects.
    pub async fn new(server: &Server, raw: &RawServer, subject: Subject) -> Result<Self> {
        let client = Client::connect(&server.endpoint, CONNECTIONS).await?.speaking(subject.media);
        let name = format!("some-{}", subject.prefix);
        let answer = client.connection().post(subject.collection, (subject.body)(&name)).await?;
        Ok(Self {
            client,
            raw: Client::connect(&raw.endpoint, CONNECTIONS).await?,
            raw_path: format!("/bytes/{}", answer.len()),
            pids: server.pids(),
            subject,
            names: Arc::new(AtomicU64::new(0)),
            some_object: format!("{}/{name}", subject.collection),
        })
    }

    /// Creates by one client, one at a time.
    pub async fn create_one(&self, sizes: Sizes) -> Result<Outcome> {
        let (limit, own) = latencies_in_turns(
            sizes.rounds,
            async || one_by_one(&self.raw, sizes.stretch, &Job::Get(self.raw_path.clone())).await,
            async || one_by_one(&self.client, sizes.stretch, &self.creating()).await,
        )
        .await?;
        Ok(Outcome::of(described(&own)).beside(described(&limit), "raw TLS answers of that size"))
    }

    /// Gets by one client, one at a time.
    pub async fn get_one(&self, sizes: Sizes) -> Result<Outcome> {
        let (limit, own) = latencies_in_turns(
            sizes.rounds,
            async || one_by_one(&self.raw, sizes.stretch, &Job::Get(self.raw_path.clone())).await,
            async || one_by_one(&self.client, sizes.stretch, &Job::Get(self.some_object.clone())).await,
        )
        .await?;
        Ok(Outcome::of(described(&own)).beside(described(&limit), "raw TLS answers of that size"))
    }

    /// Concurrent creates.
    pub async fn create_many(&self, sizes: Sizes) -> Result<Outcome> {
        Ok(self.many(sizes, self.creating()).await?.goal(Goal::TimesKubernetes(5.0)))
    }

    /// Concurrent gets.
    pub async fn get_many(&self, sizes: Sizes) -> Result<Outcome> {
        self.many(sizes, Job::Get(self.some_object.clone())).await
    }

    async fn many(&self, sizes: Sizes, job: Job) -> Result<Outcome> {
        let (mut cpu, mut done) = (0.0, 0.0);
        let raw = Job::Get(self.raw_path.clone());
        let (limit, own) = in_turns(
            sizes.rounds,
            async || Ok(in_flight(&self.raw, sizes.stretch, &raw).await?.0),
            async || {
                let before = machine::cpu_seconds_of(&self.pids)?;
                let (rate, count) = in_flight(&self.client, sizes.stretch, &job).await?;
                cpu += machine::cpu_seconds_of(&self.pids)? - before;
                done += count;
                Ok(rate)
            },
        )
        .await?;
        let each = show(cpu / done, Unit::Time);
        Ok(Outcome::of(Figure::rate(own).with(format!("server's processor time {each} each")))
            .beside(Figure::rate(limit), "raw TLS answers of that size"))
    }

    fn creating(&self) -> Job {
        Job::Create(self.subject, Arc::clone(&self.names))
    }
}

/// The request that is repeated.
#[derive(Clone)]
enum Job {
    Get(String),
    Create(Subject, Arc<AtomicU64>),
}

impl Job {
    /// Runs it once and returns the time from sending to the end of the response.
    async fn run(&self, connection: &Connection) -> Result<Duration> {
        match self {
            Self::Get(path) => {
                let started = Instant::now();
                connection.get(path).await?;
                Ok(started.elapsed())
            }
            Self::Create(subject, names) => {
                let name = format!("{}-{:08}", subject.prefix, names.fetch_add(1, Ordering::Relaxed));
                let body = (subject.body)(&name);
                let started = Instant::now();
                connection.post(subject.collection, body).await?;
                Ok(started.elapsed())
            }
        }
    }
}

fn described(latencies: &Latencies) -> Figure {
    Figure::time(latencies.median()).with(format!("p99 {}", show(latencies.percentile(99), Unit::Time)))
}

async fn one_by_one(client: &Client, stretch: Duration, job: &Job) -> Result<Latencies> {
    let connection = &client.connections()[0];
    let mut latencies = Latencies::default();
    let begin = Instant::now();
    while begin.elapsed() < stretch {
        latencies.push(job.run(connection).await?);
    }
    Ok(latencies)
}

/// Requests per second, and the number of requests.
async fn in_flight(client: &Client, stretch: Duration, job: &Job) -> Result<(f64, f64)> {
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for _ in 0..IN_FLIGHT {
        let (connection, job) = (client.connection().clone(), job.clone());
        tasks.spawn(async move {
            let mut done = 0.0;
            while begin.elapsed() < stretch {
                job.run(&connection).await?;
                done += 1.0;
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0.0;
    while let Some(count) = tasks.join_next().await {
        done += count??;
    }
    Ok((done / begin.elapsed().as_secs_f64(), done))
}

/// Creates a range of objects concurrently.
pub async fn create_range(
    client: &Client,
    subject: Subject,
    range: std::ops::Range<usize>,
    in_flight: usize,
) -> Result<()> {
    let mut tasks = JoinSet::new();
    for lane in 0..in_flight {
        let (connection, range) = (client.connection().clone(), range.clone());
        tasks.spawn(async move {
            for number in range.skip(lane).step_by(in_flight) {
                let body = (subject.body)(&format!("{}-{number:08}", subject.prefix));
                connection.post(subject.collection, body).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
