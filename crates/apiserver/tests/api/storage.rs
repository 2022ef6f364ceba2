//! Objects that the store does not keep, and a database that fails: what clients hear of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use model::{ObjectKey, Resource, Revision};
use serde_json::{Value, json};
use store::engine::{Bound, Changes, Committed, Sweep, Transaction};
use store::{ClockState, Engine, Error, ListQuery, Metrics, Options, Page, Sqlite, Store, Stored};

use crate::client::{CONFIGMAPS, Client};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Just over a third of the largest object.
fn large() -> String {
    "x".repeat(1_100_000)
}

fn deployment() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web", "args": [large(), large()]}]},
        },
    }})
}

fn too_large(answer: &crate::client::Answer) {
    let (code, reason, message) = answer.failure();
    assert_eq!((code, &*reason), (413, "RequestEntityTooLarge"), "{message}");
    assert!(message.starts_with("Request entity too large: the object would take "), "{message}");
    assert!(message.ends_with(" bytes in storage, the limit is 3145728"), "{message}");
}

#[tokio::test]
async fn an_object_that_patches_make_too_large_for_the_store_is_refused_and_stays_as_it_was() {
    let client = Client::new().await;
    client.create(DEPLOYMENTS, &deployment()).await;
    let path = format!("{DEPLOYMENTS}/web");
    let before = client.get(&path).await.version();
    let add = json!([{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": large()}]);
    too_large(&client.json_patch(&path, &add).await);
    let status = json!({"status": {"conditions": [
        {"type": "Big", "status": "True", "reason": "Big", "message": large()},
    ]}});
    too_large(&client.merge(&format!("{path}/status"), &status).await);
    let headers = [("content-type", "application/apply-patch+yaml")];
    let mut applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    applied["spec"] = json!({"template": {"spec": {"initContainers": [
        {"name": "first", "image": "web", "args": [large()]},
    ]}}});
    let target = format!("{path}?fieldManager=other");
    too_large(&client.send(Method::PATCH, &target, &headers, applied.to_string().as_bytes()).await);
    assert_eq!(client.get(&path).await.version(), before, "a refused write changes nothing");
    let shrink = json!([{"op": "remove", "path": "/spec/template/spec/containers/0/args/1"}]);
    assert_eq!(client.json_patch(&path, &shrink).await.code, 200);
    assert_eq!(client.json_patch(&path, &add).await.code, 200);
    assert_eq!(client.delete(&path).await.code, 200);
}

#[tokio::test]
async fn an_object_with_too_many_labels_is_refused() {
    let client = Client::new().await;
    let labels = |count: usize| -> Value { (0..count).map(|n| (format!("l{n}"), json!(""))).collect() };
    let refused =
        client.post(CONFIGMAPS, &json!({"metadata": {"name": "a", "labels": labels(10_001)}})).await;
    let message = "Request entity too large: the object has 10001 labels, the limit is 10000";
    assert_eq!(refused.failure(), (413, "RequestEntityTooLarge".into(), message.into()));
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a", "labels": labels(10_000)}})).await;
}

/// A database whose commits fail as they are told.
struct Failing {
    database: Sqlite,
    fault: Mutex<Option<Error>>,
}

#[async_trait]
impl Engine for Failing {
    async fn clock(&self) -> Result<ClockState, Error> {
        self.database.clock().await
    }

    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        self.database.get(key, at).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        self.database.list(query).await
    }

    async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error> {
        let fault = self.fault.lock().unwrap().clone();
        match fault {
            Some(error) => Err(error),
            None => self.database.commit(batch).await,
        }
    }

    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error> {
        self.database.changes(of, after, bound).await
    }

    async fn bell(&self) {
        self.database.bell().await;
    }

    async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
        self.database.older_than(age).await
    }

    async fn history_bytes(&self) -> Result<u64, Error> {
        self.database.history_bytes().await
    }

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        self.database.compact(through, limit).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        self.database.advance(to).await
    }

    async fn close(&self) {
        self.database.close().await;
    }
}

#[tokio::test]
async fn a_commit_of_unknown_outcome_is_a_timeout_and_the_databases_own_words_stay_in_the_log() {
    let engine = Arc::new(Failing { database: Sqlite::in_memory().unwrap(), fault: Mutex::new(None) });
    let options = Options { compaction: None, ..Options::default() };
    let store = Store::open(engine.clone(), options, &Metrics::unregistered()).await.unwrap();
    let client = Client::on(store, |builder| builder).await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let reason = || "PostgreSQL says: terminating connection at 192.0.2.7".to_owned();
    let path = format!("{CONFIGMAPS}/a");
    let faults = [
        (
            Error::OutcomeUnknown { reason: reason() },
            (504, "Timeout", "Timeout: the server could not confirm the write; it may have been committed"),
        ),
        (
            Error::Unavailable { reason: reason() },
            (503, "ServiceUnavailable", "the database is unavailable; the server's log has the reason"),
        ),
    ];
    for (fault, (code, reason, message)) in faults {
        *engine.fault.lock().unwrap() = Some(fault);
        let answers = [
            client.post(CONFIGMAPS, &json!({"metadata": {"generateName": "made-"}})).await,
            client.merge(&path, &json!({"data": {"x": "1"}})).await,
            client.delete(&path).await,
        ];
        for answer in answers {
            assert_eq!(answer.failure(), (code, reason.to_owned(), message.to_owned()));
            // A client that is told to repeat a create with generateName makes two objects.
            assert!(!answer.headers.contains_key("retry-after"));
        }
    }
}
