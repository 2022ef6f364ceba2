//! A server in memory, and a client in the same process.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use apiserver::auth::Identity;
use apiserver::{ApiServer, ApiService, Body, Builder};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use store::{Metrics, Options, Store};
use tower_service::Service;

/// The ConfigMaps of the namespace `default`.
pub const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The ConfigMap of a fresh server in `kube-system`.
pub const OF_THE_SERVER: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// Longer than any test takes, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A client of a server.
pub struct Client {
    pub api: ApiServer,
    pub store: Store,
    service: ApiService,
}

/// A response with its body.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// Status code, and reason and message of the `Status`.
    pub fn failure(&self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], self.code, "{status}");
        let text = |key: &str| status[key].as_str().unwrap_or("").to_owned();
        (self.code, text("reason"), text("message"))
    }

    /// The resourceVersion of the object or list.
    pub fn version(&self) -> u64 {
        version(&self.json())
    }

    /// All `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        let all = self.headers.get_all("warning");
        all.iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }
}

/// The resourceVersion of an object or list.
pub fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_else(|| panic!("{object}")).parse().unwrap()
}

impl Client {
    /// An administrator of a fresh server.
    pub async fn new() -> Self {
        Self::with(|builder| builder).await
    }

    /// An administrator of a server with a changed builder.
    pub async fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        Self::on(memory().await, change).await
    }

    /// Another server on the same store.
    pub async fn restarted(&self) -> Self {
        Self::on(self.store.clone(), |builder| builder).await
    }

    /// An administrator of a server on this store.
    pub async fn on(store: Store, change: impl FnOnce(Builder) -> Builder) -> Self {
        let api = change(ApiServer::builder(store.clone())).build().await.unwrap();
        api.ready().await;
        let admin = Identity::authenticated("admin", ["system:masters".to_owned()]);
        Self { service: ApiService::new(api.clone(), admin), api, store }
    }

    /// The same server for another caller.
    pub fn as_caller(&self, caller: Identity) -> Self {
        let service = ApiService::new(self.api.clone(), caller);
        Self { api: self.api.clone(), store: self.store.clone(), service }
    }

    /// A client of another service on the same store.
    pub fn of(&self, service: ApiService) -> Self {
        Self { api: self.api.clone(), store: self.store.clone(), service }
    }

    /// Sends a request and reads the whole response.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (key, value) in headers {
            request = request.header(*key, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        let exchange = async {
            let response = self.service.clone().call(request).await.unwrap();
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            Answer { code: head.status.as_u16(), headers: head.headers, bytes }
        };
        tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|_| panic!("{path} hangs"))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], b"").await
    }

    pub async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::POST, path, &[], object.to_string().as_bytes()).await
    }

    pub async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::PUT, path, &[], object.to_string().as_bytes()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], b"").await
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> Answer {
        let headers = [("content-type", "application/merge-patch+json")];
        self.send(Method::PATCH, path, &headers, patch.to_string().as_bytes()).await
    }

    pub async fn json_patch(&self, path: &str, patch: &Value) -> Answer {
        let headers = [("content-type", "application/json-patch+json")];
        self.send(Method::PATCH, path, &headers, patch.to_string().as_bytes()).await
    }

    /// Creates an object and returns it.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        let answer = self.post(path, object).await;
        assert_eq!(answer.code, 201, "{}", answer.json());
        answer.json()
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    /// Opens a watch with an `Accept` header.
    pub async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::get(path).header("accept", accept).body(Full::new(Bytes::new())).unwrap();
        let response = self.service.clone().call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Events { body: Box::pin(response.into_body()), buffer: Vec::new() }
    }
}

/// A fresh store in memory, without automatic compaction.
pub async fn memory() -> Store {
    let engine = Arc::new(store::sqlite::Sqlite::in_memory().unwrap());
    let options = Options { compaction: None, ..Options::default() };
    let metrics = Metrics::unregistered();
    Store::open(engine, options, &metrics).await.unwrap()
}

/// The events of a watch.
pub struct Events {
    body: Pin<Box<Body>>,
    buffer: Vec<u8>,
}

impl Events {
    /// The next event; `None` at the end of the watch.
    pub async fn next(&mut self) -> Option<Value> {
        let line = self.line().await?;
        Some(serde_json::from_slice(&line).unwrap())
    }

    /// The next event as bytes.
    pub async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Some(self.buffer.drain(..=end).collect());
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("the watch hangs")?;
            self.buffer.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }

    /// Type and name of the next event.
    pub async fn next_name(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch has ended");
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }

    /// Checks types and names of the next events.
    pub async fn expect(&mut self, expected: &[(&str, &str)]) {
        for (kind, name) in expected {
            assert_eq!(self.next_name().await, ((*kind).to_owned(), (*name).to_owned()));
        }
    }
}
