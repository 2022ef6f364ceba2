//! The cost of all default admission plugins for a new Pod, compared with a server without plugins.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use apiserver::admission::Switches;
use apiserver::auth::Connection;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use server::{Config, loopback};

use crate::figure::{Figure, Goal, Unit, show};
use crate::objects::{NAMESPACE, pod_json};
use crate::report::{Engine, Outcome, Report};
use crate::stats::Latencies;

const IN_PROCESS: Engine = Engine { name: "in process", busy: "bench" };
const PLUGINS: &str = "admission of a pod by all default plugins";

/// Pods per round.
const PODS: usize = 1_000;

/// Runs the measure.
pub async fn run(report: &mut Report) {
    let pods = PODS * report.sizes.rounds;
    report.measure(PLUGINS, IN_PROCESS, plugins(pods)).await;
}

struct Server {
    server: server::Server,
    admin: Connection,
}

impl Server {
    async fn start(plugins: Switches) -> Result<Self> {
        // Without controllers: their requests would share the processor with the measured ones.
        let config = Config { plugins, controllers: None, event_ttl: Duration::ZERO, ..Config::in_memory() };
        let server = server::Server::start(config).await?;
        server.ready().await;
        let admin = Connection::InProcess(loopback::administrator());
        let server = Self { server, admin };
        let namespace = format!("{{\"metadata\":{{\"name\":\"{NAMESPACE}\"}}}}");
        server.post("/api/v1/namespaces", namespace.into()).await?;
        let account = Bytes::from_static(b"{\"metadata\":{\"name\":\"default\"}}");
        server.post(&format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), account).await?;
        Ok(server)
    }

    async fn post(&self, path: &str, body: Bytes) -> Result<()> {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Full::new(body)).context("a request")?;
        let answer = self.server.api().answer(&self.admin, request).await;
        let code = answer.status();
        let body = answer.into_body().collect().await.context("an answer")?.to_bytes();
        ensure!(code == 201, "{path}: {code} {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}

/// Creates on both servers in turns, so that other load on the machine affects both.
async fn plugins(pods: usize) -> Result<Outcome> {
    let all = Server::start(Switches::kubernetes()).await?;
    let none = Server::start(Switches::none()).await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let (mut with, mut without) = (Latencies::default(), Latencies::default());
    for number in 0..pods {
        let body = pod_json(&format!("pod-{number}"));
        for (server, times) in [(&all, &mut with), (&none, &mut without)] {
            let started = Instant::now();
            server.post(&path, body.clone()).await?;
            times.push(started.elapsed());
        }
    }
    let (with, without) = (with.median(), without.median());
    let detail = format!("{} instead of {}", show(with, Unit::Time), show(without, Unit::Time));
    let more = Figure::percent((with / without - 1.0) * 100.0).with(detail);
    Ok(Outcome::of(more).goal(Goal::Below(20.0)))
}
