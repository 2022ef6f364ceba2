//! A store engine that fails, or loses part of its history, on demand.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiserver::Builder;
use async_trait::async_trait;
use model::{ObjectKey, Resource, Revision};
use store::engine::{Bound, Changes, Committed, Sweep, Transaction, beyond};
use store::{ClockState, Engine, Error, ListQuery, Metrics, Options, Page, Sqlite, Store, Stored};
use tokio::sync::Notify;

use crate::client::Client;

pub struct Faulty {
    database: Sqlite,
    /// The error of every commit, if set.
    pub fault: Mutex<Option<Error>>,
    /// Whether reads of the log fail.
    pub log_fails: AtomicBool,
    /// Whether lists fail.
    pub lists_fail: AtomicBool,
    /// Whether reads of old versions fail.
    pub old_versions_fail: AtomicBool,
    pub bell: Notify,
    epoch: AtomicU64,
}

impl Faulty {
    /// A server on this engine, with the metrics of its store.
    pub async fn server(change: impl FnOnce(Builder) -> Builder) -> (Client, Arc<Self>) {
        let engine = Arc::new(Self {
            database: Sqlite::in_memory().unwrap(),
            fault: Mutex::default(),
            log_fails: AtomicBool::new(false),
            lists_fail: AtomicBool::new(false),
            old_versions_fail: AtomicBool::new(false),
            bell: Notify::new(),
            epoch: AtomicU64::new(0),
        });
        let options = Options { compaction: None, ..Options::default() };
        let mut metrics = prometheus_client::registry::Registry::default();
        let store = Store::open(engine.clone(), options, &Metrics::new(&mut metrics)).await.unwrap();
        (Client::on(store, |builder| change(builder.metrics(metrics))).await, engine)
    }

    /// Replaces the database by one with unseen writes, like a failover that loses commits: earlier revisions are expired.
    pub async fn lose_history(&self, unseen: Transaction) {
        let committed = self.database.commit(vec![unseen]).await.unwrap();
        committed.outcomes.into_iter().for_each(|outcome| drop(outcome.unwrap()));
        let seen = self.database.clock().await.unwrap().current;
        self.database.advance(beyond(seen)).await.unwrap();
        self.epoch.fetch_add(1, Ordering::Release);
        self.bell.notify_one();
    }
}

fn refused(switch: &AtomicBool) -> Result<(), Error> {
    if switch.load(Ordering::Relaxed) {
        return Err(Error::Unavailable { reason: "it was told to fail".to_owned() });
    }
    Ok(())
}

#[async_trait]
impl Engine for Faulty {
    async fn clock(&self) -> Result<ClockState, Error> {
        self.database.clock().await
    }

    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        if at.is_some() {
            refused(&self.old_versions_fail)?;
        }
        self.database.get(key, at).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        refused(&self.lists_fail)?;
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
        refused(&self.log_fails)?;
        self.database.changes(of, after, bound).await
    }

    async fn bell(&self) {
        self.bell.notified().await;
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
        self.database.older_than(age).await
    }

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        self.database.compact(through, limit).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        self.database.advance(to).await
    }

    async fn history_bytes(&self) -> Result<u64, Error> {
        self.database.history_bytes().await
    }

    async fn close(&self) {
        self.database.close().await;
    }
}
