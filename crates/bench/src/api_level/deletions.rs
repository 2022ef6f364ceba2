//! Cascading deletion and namespace deletion: the time until the last object is gone.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::Connection;
use super::{Client, Engine, KUBERNETES, Programs};
use crate::args::Sizes;
use crate::figure::{Figure, Goal, sized};
use crate::report::{Outcome, Report, progress};

const CASCADE: &str = "api an owner deleted, until {n} dependents are gone";
const NAMESPACE: &str = "api a namespace deleted, until its {n} objects are gone";

/// Concurrent requests while objects are created.
const IN_FLIGHT: usize = 64;
/// The poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The time limit of a deletion.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The names of the measures.
pub fn measures(sizes: Sizes) -> [String; 2] {
    [CASCADE, NAMESPACE].map(|name| sized(name, sizes.deletions))
}

/// Runs all measures on one server.
pub async fn run(report: &mut Report, engine: Engine, programs: &Programs) -> Result<()> {
    let sizes = report.sizes;
    let [cascade, namespace] = measures(sizes);
    if !report.wants_any(&[&cascade, &namespace], engine) {
        return Ok(());
    }
    let mut running = programs.start(engine).await?;
    if engine == KUBERNETES && !programs.start_controllers(&mut running)? {
        progress("         there is no kube-controller-manager beside kube-apiserver");
        return running.stop().await;
    }
    let client = Client::connect(&running.server.endpoint, 4).await?;
    let bench = Bench { client: &client };
    // A first small deletion shows that the controllers have started.
    bench.cascade("first", 1).await?;
    report
        .measure(&cascade, engine, async {
            let took = bench.cascade("many", sizes.deletions).await?;
            Ok(Outcome::of(Figure::time(took)).goal(Goal::Below(2.0)))
        })
        .await;
    report
        .measure(&namespace, engine, async {
            let took = bench.namespace("ending", sizes.deletions).await?;
            Ok(Outcome::of(Figure::time(took)).goal(Goal::Below(3.0)))
        })
        .await;
    running.stop().await
}

struct Bench<'a> {
    client: &'a Client,
}

impl Bench<'_> {
    /// Seconds from the deletion of an owner until its dependents are gone.
    async fn cascade(&self, namespace: &str, count: usize) -> Result<f64> {
        let maps = self.create_namespace(namespace).await?;
        let owner = self.client.connection().post(&maps, body(json!({"name": "owner"}))).await?;
        let owner: Value = serde_json::from_slice(&owner)?;
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        });
        self.fill(&maps, count, &json!([reference])).await?;
        let begin = Instant::now();
        self.delete(&format!("{maps}/owner")).await?;
        // The label excludes objects that controllers create in every namespace.
        self.until_gone(&format!("{maps}?labelSelector=bench=here")).await?;
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Seconds from the deletion of a namespace until it is gone.
    async fn namespace(&self, name: &str, count: usize) -> Result<f64> {
        let maps = self.create_namespace(name).await?;
        self.fill(&maps, count, &json!([])).await?;
        let begin = Instant::now();
        self.delete(&format!("/api/v1/namespaces/{name}")).await?;
        let named = format!("/api/v1/namespaces?fieldSelector=metadata.name={name}");
        self.until_gone(&named).await?;
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Creates a namespace and returns the path of its ConfigMaps.
    async fn create_namespace(&self, name: &str) -> Result<String> {
        let namespaces = "/api/v1/namespaces";
        self.client.connection().post(namespaces, body(json!({"name": name}))).await?;
        Ok(format!("{namespaces}/{name}/configmaps"))
    }

    async fn fill(&self, maps: &str, count: usize, owners: &Value) -> Result<()> {
        let mut tasks = JoinSet::new();
        for lane in 0..IN_FLIGHT {
            let (connection, maps) = (self.client.connection().clone(), maps.to_owned());
            let owners = owners.clone();
            tasks.spawn(async move {
                for number in (lane..count).step_by(IN_FLIGHT) {
                    let metadata = json!({
                        "name": format!("map-{number}"), "labels": {"bench": "here"}, "ownerReferences": owners,
                    });
                    connection.post(&maps, body(metadata)).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let connection: &Connection = self.client.connection();
        connection.send(Method::DELETE, path, Bytes::new()).await?.into_body().collect().await?;
        Ok(())
    }

    /// Waits until a selection is empty.
    async fn until_gone(&self, selection: &str) -> Result<()> {
        let begin = Instant::now();
        let path = format!("{selection}&limit=1");
        while begin.elapsed() < TIMEOUT {
            let list = self.client.connection().get(&path).await?;
            let list: Value = serde_json::from_slice(&list).context("a list is JSON")?;
            if list["items"].as_array().is_some_and(Vec::is_empty) {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        bail!("some objects still exist after {TIMEOUT:?}")
    }
}

fn body(metadata: Value) -> Bytes {
    json!({"metadata": metadata, "data": {"key": "value"}}).to_string().into()
}
