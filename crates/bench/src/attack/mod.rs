//! `bench --attack`: bounded attacks on a private server on loopback, one after the other, and the latency of
//! a healthy client meanwhile.

mod frames;
mod healthy;
mod waves;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use tempfile::TempDir;

use self::healthy::Felt;
use self::waves::{Target, Wave};
use crate::api_level::{Client, Endpoint, Orlop, Server};
use crate::args::Args;
use crate::machine;
use crate::report::progress;

/// Duration of the healthy client's measurement without an attack, and during one.
const QUIET: Duration = Duration::from_secs(5);
const ATTACK: Duration = Duration::from_secs(15);

/// The goals: resident memory, and the healthy client's p99 beside its quiet value.
const MOST_MEMORY: f64 = 400e6;
const MOST_RATIO: f64 = 5.0;

/// Rights of the attackers and the healthy client, all of them in one namespace.
const TOKENS: &str = "alice,alice,1\nbob,bob,2\n";
const ACCESS: [(&str, &str); 3] = [
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        r#"{"metadata":{"name":"attack"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        r#"{"metadata":{"name":"attack"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"attack"},
        "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"},
        {"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bob"}]}"#,
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        r#"{"metadata":{"name":"blobs.example.org"},"spec":{"group":"example.org","scope":"Namespaced",
        "names":{"plural":"blobs","singular":"blob","kind":"Blob","listKind":"BlobList"},
        "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
        "x-kubernetes-preserve-unknown-fields":true}}}]}}"#,
    ),
];

type Attack = for<'a> fn(&'a Target) -> BoxFuture<'a, Result<Wave>>;

const ATTACKS: [(&str, Attack); 11] = [
    ("slow heads", |target| Box::pin(waves::slow_heads(target))),
    ("slow bodies", |target| Box::pin(waves::slow_bodies(target))),
    ("stalled lists", |target| Box::pin(waves::stalled_lists(target))),
    ("stalled watches", |target| Box::pin(waves::stalled_watches(target))),
    ("stalled initial states", |target| Box::pin(waves::stalled_initial_states(target))),
    ("unfinished bodies", |target| Box::pin(waves::unfinished_bodies(target))),
    ("watch flood", |target| Box::pin(waves::watch_flood(target))),
    ("HTTP/2 rapid reset", |target| Box::pin(waves::rapid_reset(target))),
    ("CONTINUATION flood", |target| Box::pin(waves::continuation_flood(target))),
    ("idle connections", |target| Box::pin(waves::idle_connections(target))),
    ("large objects", |target| Box::pin(waves::large_objects(target))),
];

/// One line of the table.
struct Line {
    attack: &'static str,
    count: usize,
    peak: f64,
    quiet: Felt,
    during: Felt,
}

impl Line {
    fn ratio(&self) -> f64 {
        self.during.latencies.percentile(99) / self.quiet.latencies.percentile(99).max(f64::MIN_POSITIVE)
    }

    fn is_within_goals(&self) -> bool {
        self.peak <= MOST_MEMORY && self.ratio() <= MOST_RATIO && self.during.errors == 0
    }
}

/// Runs every selected attack and prints the table. Returns whether all goals were met.
pub async fn run(args: &Args) -> Result<bool> {
    process::descriptors::raise_limit();
    let orlop = Orlop::find(args.orlop.as_deref()).await?;
    let is_wanted = |name: &str| args.only.as_ref().is_none_or(|only| only.is_match(name));
    let mut lines = Vec::new();
    for (attack, wave) in ATTACKS.into_iter().filter(|(name, _)| is_wanted(name)) {
        progress(&format!("attack: {attack}"));
        lines.push(against(&orlop, attack, wave).await.with_context(|| attack.to_owned())?);
    }
    println!(
        "| attack | count | peak RSS | healthy p50 | healthy p99 | of quiet | new connection | errors | goals |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for line in &lines {
        let (during, peak) = (&line.during.latencies, line.peak / 1e6);
        println!(
            "| {} | {} | {peak:.0} MB | {:.1} ms | {:.1} ms | {:.1}x | {:.0} ms | {} of {} | {} |",
            line.attack,
            line.count,
            during.percentile(50) * 1e3,
            during.percentile(99) * 1e3,
            line.ratio(),
            line.during.connects.percentile(100) * 1e3,
            line.during.errors,
            line.during.errors + during.len(),
            if line.is_within_goals() { "met" } else { "missed" },
        );
    }
    Ok(lines.iter().all(Line::is_within_goals))
}

async fn against(orlop: &Orlop, attack: &'static str, wave: Attack) -> Result<Line> {
    let folder = TempDir::new()?;
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, TOKENS)?;
    let server = orlop.with(["--token-auth-file".into(), tokens.into()]).start(folder.path(), None).await?;
    let target = prepare(&server).await?;
    let pid = *server.pids().first().context("the server has no process")?;
    let quiet = healthy_client(&target.endpoint, QUIET).await?;
    machine::forget_peak(pid)?;
    let (wave, during) = tokio::try_join!(wave(&target), healthy_client(&target.endpoint, ATTACK))?;
    let peak = machine::peak(pid)?;
    let count = wave.count;
    drop(wave);
    server.stop().await?;
    Ok(Line { attack, count, peak, quiet, during })
}

/// Measures the healthy client on a thread of its own: it must not wait for the attacker's work.
async fn healthy_client(endpoint: &Endpoint, time: Duration) -> Result<Felt> {
    let endpoint = endpoint.clone();
    let measured = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(healthy::measure(&endpoint, time))
    });
    measured.await?
}

/// Creates the roles and objects of the attacks: large ones to be listed and watched.
async fn prepare(server: &Server) -> Result<Target> {
    let address = &server.endpoint.address;
    ensure!(address.starts_with("127.0.0.1:"), "{address} is not on loopback: nothing else is attacked");
    let client = Client::connect(&server.endpoint, 1).await?;
    let admin = client.connection();
    for (path, object) in ACCESS {
        admin.post(path, Bytes::from(object)).await?;
    }
    for i in 0..waves::LARGE {
        let object = waves::large_configmap(&format!("large-{i}"));
        admin.send(Method::POST, waves::CONFIGMAPS, Bytes::from(object)).await?;
    }
    let small = r#"{"metadata":{"name":"healthy"},"data":{"a":"0"}}"#;
    admin.post(waves::CONFIGMAPS, Bytes::from(small)).await?;
    Ok(Target { endpoint: server.endpoint.without_certificate() })
}
