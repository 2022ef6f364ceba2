//! A thousand CRDs: the time to install them, and the cost of a server with them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::requests::create_namespace;
use super::{Client, Engine, Programs, Running};
use crate::args::Sizes;
use crate::figure::{Figure, Goal, Unit, show, sized};
use crate::machine;
use crate::report::{Outcome, Report};

const INSTALL: &str = "api install {n} CRDs";
const MEMORY: &str = "api memory per CRD";
const START: &str = "api start to first answer with {n} CRDs";
const IDLE: &str = "api idle memory with {n} CRDs";

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "bench.example.com";

/// Concurrent requests of the installation.
const IN_FLIGHT: usize = 16;

/// The time after which a server has finished its background work.
const SETTLE: Duration = Duration::from_secs(1);

/// The names of the measures.
pub fn measures(sizes: Sizes) -> [String; 4] {
    [INSTALL, MEMORY, START, IDLE].map(|name| sized(name, sizes.crds))
}

/// Runs all measures on one server.
pub async fn run(report: &mut Report, engine: Engine, programs: &Programs) -> Result<()> {
    let sizes = report.sizes;
    let [install, memory, start, idle] = measures(sizes);
    if !report.wants_any(&[&install, &memory, &start, &idle], engine) {
        return Ok(());
    }
    let running = programs.start(engine).await?;
    create_namespace(&running.server).await?;
    tokio::time::sleep(SETTLE).await;
    let pids = running.server.pids();
    let (before, cpu) = (resident(&pids)?, machine::cpu_seconds_of(&pids)?);
    let took = install_all(&running, sizes.crds).await?;
    let cpu = show(machine::cpu_seconds_of(&pids)? - cpu, Unit::Time);
    tokio::time::sleep(SETTLE).await;
    let growth = resident(&pids)? - before;
    let installed = Figure::time(took).with(format!("server's processor time {cpu}"));
    let installed = Outcome::of(installed).goal(Goal::Below(2.0));
    report.measure(&install, engine, async { Ok(installed) }).await;
    let each = Outcome::of(Figure::bytes(growth / sizes.crds as f64)).goal(Goal::Below(200e3));
    report.measure(&memory, engine, async { Ok(each) }).await;

    let Running { server, _folder: folder, .. } = running;
    server.stop().await?;
    let server = programs.orlop()?.start(folder.path(), None).await?;
    let started = Outcome::of(Figure::time(server.start.as_secs_f64()));
    report.measure(&start, engine, async { Ok(started) }).await;
    tokio::time::sleep(SETTLE).await;
    let idling = Outcome::of(Figure::bytes(resident(&server.pids())?));
    report.measure(&idle, engine, async { Ok(idling) }).await;
    server.stop().await
}

fn resident(pids: &[u32]) -> Result<f64> {
    pids.iter().map(|pid| machine::resident(*pid)).sum()
}

/// Installs the CRDs and creates an object of each as soon as its CRD exists. Returns seconds.
async fn install_all(running: &Running, count: usize) -> Result<f64> {
    let client = Client::connect(&running.server.endpoint, 2).await?;
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for lane in 0..IN_FLIGHT {
        let connection = client.connection().clone();
        tasks.spawn(async move {
            for number in (lane..count).step_by(IN_FLIGHT) {
                connection.post(CRDS, crd(number)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let took = begin.elapsed().as_secs_f64();
    for number in [0, count / 2, count - 1] {
        let collection = format!("/apis/{GROUP}/v1/namespaces/bench/widgets{number}");
        client.connection().post(&collection, object(number)).await.context("the new kind is not served")?;
    }
    Ok(took)
}

/// A typical schema of an operator: types, defaults, a pattern, a validation rule, a status.
fn schema() -> Value {
    let text = || json!({"type": "string"});
    let condition = json!({
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": text(), "status": {"type": "string", "enum": ["True", "False", "Unknown"]}, "reason": text(),
            "message": text(), "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
    });
    let template = json!({
        "type": "object",
        "required": ["image"],
        "properties": {
            "image": {"type": "string", "pattern": "^[a-z0-9./:-]+$"},
            "args": {"type": "array", "items": text()},
            "env": {"type": "object", "additionalProperties": text()},
            "cpu": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
        },
    });
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["template"],
                "x-kubernetes-validations": [
                    {"rule": "self.minReplicas <= self.replicas", "message": "too few replicas"},
                ],
                "properties": {
                    "replicas": {"type": "integer", "minimum": 0, "default": 1},
                    "minReplicas": {"type": "integer", "minimum": 0, "default": 0},
                    "paused": {"type": "boolean"},
                    "template": template,
                },
            },
            "status": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer"},
                    "conditions": {
                        "type": "array", "items": condition,
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                    },
                },
            },
        },
    })
}

/// A CRD with this schema and printer columns.
fn crd(number: usize) -> Bytes {
    let plural = format!("widgets{number}");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": plural, "singular": format!("widget{number}"), "kind": format!("Widget{number}"),
                "listKind": format!("Widget{number}List"), "shortNames": [format!("wd{number}")],
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema()},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                ],
            }],
        },
    });
    definition.to_string().into()
}

fn object(number: usize) -> Bytes {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": format!("Widget{number}"),
        "metadata": {"name": "one"},
        "spec": {"template": {"image": "registry.example.com/web:1"}},
    });
    object.to_string().into()
}
