//! Pods, the kind with the most validation, as JSON and as protobuf.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::client::{JSON, PROTOBUF};
use super::requests::{self, Subject, create_namespace};
use super::{Client, Engine, Programs, lists};
use crate::args::Sizes;
use crate::figure::sized;
use crate::objects::{pod_json, pod_protobuf};
use crate::raw::tls::RawServer;
use crate::report::Report;

const SUBJECTS: [(&str, Subject); 2] = [
    ("JSON", Subject { collection: PODS, media: JSON, body: pod_json, prefix: "json" }),
    ("protobuf", Subject { collection: PODS, media: PROTOBUF, body: pod_protobuf, prefix: "protobuf" }),
];

const PODS: &str = "/api/v1/namespaces/bench/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/bench/serviceaccounts";

/// Concurrent requests while pods are created for lists.
const IN_FLIGHT: usize = 16;

/// The time within which Kubernetes notices the service account that pods need.
const PATIENCE: Duration = Duration::from_secs(10);

fn create(form: &str) -> String {
    format!("api create pods, {form}, 64 in flight")
}

fn get(form: &str) -> String {
    format!("api get pods, {form}, 64 in flight")
}

fn list(form: &str, sizes: Sizes) -> String {
    sized(&format!("api list of {{n}} pods, {form}"), sizes.pods)
}

/// The names of the measures.
pub fn measures(sizes: Sizes) -> Vec<String> {
    SUBJECTS.iter().flat_map(|(form, _)| [create(form), get(form), list(form, sizes)]).collect()
}

/// Runs all measures on one server.
pub async fn run(report: &mut Report, engine: Engine, programs: &Programs) -> Result<()> {
    if !report.wants_any(&measures(report.sizes), engine) {
        return Ok(());
    }
    let sizes = report.sizes;
    let raw = RawServer::start().await?;
    let running = programs.start(engine).await?;
    create_namespace(&running.server).await?;
    let client = Client::connect(&running.server.endpoint, 1).await?;
    wait_for_account(&client).await?;
    let listed = Subject { prefix: "listed", ..SUBJECTS[0].1 };
    requests::create_range(&client, listed, 0..sizes.pods, IN_FLIGHT).await?;
    for (form, subject) in SUBJECTS {
        let bench = lists::Bench::new(&running.server, &raw, subject, sizes.pods).await?;
        report.measure(&list(form, sizes), engine, bench.whole(sizes)).await;
    }
    for (form, subject) in SUBJECTS {
        let bench = requests::Bench::new(&running.server, &raw, subject).await?;
        report.measure(&get(form), engine, bench.get_many(sizes)).await;
        report.measure(&create(form), engine, bench.create_many(sizes)).await;
    }
    running.stop().await
}

/// Creates the default service account and waits for it: Kubernetes rejects pods until it has seen the
/// account.
async fn wait_for_account(client: &Client) -> Result<()> {
    let account = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
    // A conflict means that a controller has created it; other errors show below.
    let _ = client.connection().post(ACCOUNTS, account.into()).await;
    let begin = Instant::now();
    while let Err(error) = client.connection().post(&format!("{PODS}?dryRun=All"), pod_json("try")).await {
        if begin.elapsed() > PATIENCE {
            bail!("cannot create a pod: {error:#}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
