//! Ends namespaces: empties those whose deletion has begun, then takes away the finalizer that held them.
//!
//! It speaks to the server as every client does, in process. Doing everything twice is doing it once, so that several servers on
//! one database need not agree who does it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use apiserver::{ApiService, Body};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use process::Shutdown;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_service::Service;

/// The finalizer that stands for "its content is not gone yet".
const FINALIZER: &str = "kubernetes";
/// How long to wait before looking again after objects whose own finalizers hold them, at first and at most.
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LAST_DELAY: Duration = Duration::from_secs(15);
/// How long to wait before watching again when a watch could not be opened.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Works until asked to stop.
pub(crate) async fn run(api: ApiService, shutdown: Shutdown) -> Result<()> {
    let mut janitor = Janitor { api, waiting: BTreeMap::new() };
    let mut stop = std::pin::pin!(shutdown.requested());
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            result = janitor.follow() => if let Err(error) = result {
                tracing::warn!(%error, "namespaces cannot be watched; trying again");
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
        }
    }
}

struct Janitor {
    api: ApiService,
    /// Namespaces that are not empty yet: when to look again, and how long to wait then.
    waiting: BTreeMap<String, (Instant, Duration)>,
}

impl Janitor {
    /// Follows one watch to its end.
    async fn follow(&mut self) -> Result<()> {
        let response = self.send(Method::GET, "/api/v1/namespaces?watch=true", &Value::Null).await?;
        let mut body = response.into_body();
        let mut buffer = Vec::new();
        loop {
            let due = self.waiting.values().map(|(due, _)| *due).min();
            let timer = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                frame = body.frame() => match frame {
                    None => return Ok(()),
                    Some(frame) => {
                        let data = frame?.into_data().map_err(|_| anyhow!("a watch has no trailers"))?;
                        buffer.extend_from_slice(&data);
                        self.note(&mut buffer)?;
                    }
                },
                () = timer => {}
            }
            self.work().await?;
        }
    }

    /// Notes the namespaces that are to end.
    fn note(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).context("an event is JSON")?;
            let namespace = &event["object"];
            let name = namespace["metadata"]["name"].as_str().unwrap_or("").to_owned();
            match event["type"].as_str() {
                Some("ERROR") => return Err(anyhow!("{}", namespace["message"])),
                Some("DELETED") => {
                    self.waiting.remove(&name);
                }
                _ if has_to_end(namespace) => {
                    self.waiting.entry(name).or_insert((Instant::now(), FIRST_DELAY));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks at the namespaces that are due.
    async fn work(&mut self) -> Result<()> {
        let now = Instant::now();
        let due: Vec<String> =
            self.waiting.iter().filter(|(_, (due, _))| *due <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            if self.empty(&name).await? {
                self.let_go(&name).await?;
                self.waiting.remove(&name);
            } else if let Some((due, delay)) = self.waiting.get_mut(&name) {
                *due = Instant::now() + *delay;
                *delay = (*delay * 2).min(LAST_DELAY);
            }
        }
        Ok(())
    }

    /// Deletes everything in a namespace. True if nothing is left.
    async fn empty(&self, namespace: &str) -> Result<bool> {
        let mut left = false;
        for (base, plural) in self.namespaced_resources().await? {
            let path = format!("{base}/namespaces/{namespace}/{plural}");
            // No node ends its pods, so that there is nothing to wait for.
            self.value(Method::DELETE, &format!("{path}?gracePeriodSeconds=0"), &Value::Null).await?;
            let list = self.value(Method::GET, &format!("{path}?limit=1"), &Value::Null).await?;
            left |= list["items"].as_array().is_some_and(|items| !items.is_empty());
        }
        Ok(!left)
    }

    /// Every resource that lives in namespaces: the base of its path, and its plural.
    async fn namespaced_resources(&self) -> Result<Vec<(String, String)>> {
        let mut bases = vec!["/api/v1".to_owned()];
        let groups = self.value(Method::GET, "/apis", &Value::Null).await?;
        for group in groups["groups"].as_array().into_iter().flatten() {
            let preferred = group["preferredVersion"]["groupVersion"].as_str().unwrap_or("");
            bases.push(format!("/apis/{preferred}"));
        }
        let mut all = Vec::new();
        for base in bases {
            let list = self.value(Method::GET, &base, &Value::Null).await?;
            let resources = list["resources"].as_array().into_iter().flatten();
            let deletable = resources.filter(|resource| {
                let verbs = resource["verbs"].as_array();
                let has = |verb: &str| verbs.is_some_and(|verbs| verbs.iter().any(|v| v == verb));
                resource["namespaced"] == true && has("deletecollection") && has("list")
            });
            let plurals = deletable.filter_map(|resource| resource["name"].as_str());
            all.extend(plurals.map(|plural| (base.clone(), plural.to_owned())));
        }
        Ok(all)
    }

    /// Takes the finalizer away: the namespace goes.
    async fn let_go(&self, name: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{name}");
        let mut namespace = self.value(Method::GET, &path, &Value::Null).await?;
        if has_to_end(&namespace) {
            if let Some(finalizers) = namespace["spec"]["finalizers"].as_array_mut() {
                finalizers.retain(|finalizer| finalizer != FINALIZER);
            }
            self.value(Method::PUT, &format!("{path}/finalize"), &namespace).await?;
        }
        Ok(())
    }

    /// Sends a request and reads the answer. What is gone or was changed meanwhile will come by again: that is no error.
    async fn value(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let response = self.send(method, path, body).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        let value: Value = serde_json::from_slice(&bytes).with_context(|| format!("{path} answers JSON"))?;
        match code {
            200..300 => Ok(value),
            404 | 409 => Ok(json!({})),
            _ => Err(anyhow!("{path}: {code} {}", value["message"])),
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Response<Body>> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(path).body(Full::new(Bytes::from(body)))?;
        Ok(self.api.clone().call(request).await?)
    }
}

/// Whether the deletion of a namespace has begun and waits for its content to go.
fn has_to_end(namespace: &Value) -> bool {
    let finalizers = namespace["spec"]["finalizers"].as_array();
    namespace["metadata"]["deletionTimestamp"].is_string()
        && finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == FINALIZER))
}

#[cfg(test)]
mod tests;
