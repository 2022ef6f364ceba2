//! The publisher, the one task that feeds the hub: batches of this server as they are committed, and the log
//! for everything else.

use std::sync::Arc;
use std::time::Duration;

use model::Revision;
use tokio::sync::{Notify, mpsc, watch};

use super::Hub;
use crate::engine::{Bound, Engine};
use crate::event::SharedChange;
use crate::health::Health;
use crate::types::{Change, Error};

/// Batches that may wait for publication. Further ones are read back from the log, so memory stays bounded.
const WAITING: usize = 16;

/// Size of one read of the log.
const LOG_CHUNK: Bound = Bound { changes: 1000, bytes: 8 << 20 };

/// Pause before a failed read of the log is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Entrance of the publisher: takes committed batches from the committer.
pub(crate) struct Outlet {
    batches: mpsc::Sender<Vec<Change>>,
    missed: Arc<Notify>,
    health: Arc<Health>,
}

impl Outlet {
    /// Hands over a batch without waiting.
    pub fn send(&self, changes: Vec<Change>) {
        self.health.behind();
        if self.batches.try_send(changes).is_err() {
            self.missed.notify_one();
        }
    }
}

/// The publisher task and its entrance. The task ends when the entrance is dropped and everything is
/// published, or, if the log cannot be read, on shutdown.
pub(crate) fn publisher(
    hub: Arc<Hub>,
    engine: Arc<dyn Engine>,
    stop: watch::Receiver<bool>,
    health: Arc<Health>,
) -> (Outlet, impl Future<Output = ()>) {
    let (batches, waiting) = mpsc::channel(WAITING);
    let missed = Arc::new(Notify::new());
    let outlet = Outlet { batches, missed: Arc::clone(&missed), health: Arc::clone(&health) };
    let publisher = Publisher { hub, engine, stop, health };
    (outlet, async move { publisher.run(waiting, &missed).await })
}

struct Publisher {
    hub: Arc<Hub>,
    engine: Arc<dyn Engine>,
    stop: watch::Receiver<bool>,
    health: Arc<Health>,
}

impl Publisher {
    async fn run(&self, mut waiting: mpsc::Receiver<Vec<Change>>, missed: &Notify) {
        loop {
            tokio::select! {
                batch = waiting.recv() => match batch {
                    Some(changes) => {
                        self.health.behind();
                        self.accept(changes).await;
                    }
                    None => return,
                },
                () = missed.notified() => self.catch_up(None).await,
                () = self.engine.bell() => {
                    self.health.behind();
                    self.catch_up(None).await;
                }
                () = self.hub.exceeded() => self.hub.trim(),
            }
            // Batches that arrive meanwhile mark it as behind again.
            if waiting.is_empty() {
                self.health.caught_up();
            }
        }
    }

    /// Publishes a batch, after the earlier commits of other servers.
    async fn accept(&self, changes: Vec<Change>) {
        let Some(first) = changes.first().map(|change| change.revision) else { return };
        if first > self.hub.head().next() {
            self.catch_up(Some(first)).await;
        }
        self.publish(changes).await;
    }

    /// Publishes from the log: all of it, or at least the changes before a revision.
    async fn catch_up(&self, before: Option<Revision>) {
        while before.is_none_or(|before| self.hub.head().next() < before) {
            match self.read().await {
                Ok(changes) if !changes.is_empty() => {
                    self.publish(changes).await;
                    continue;
                }
                Ok(_) if before.is_none() => return,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "cannot read the log; watches wait"),
            }
            if self.pause().await {
                return;
            }
        }
    }

    async fn read(&self) -> Result<Vec<Change>, Error> {
        let epoch = self.engine.epoch();
        if self.hub.epoch() < epoch {
            let now = self.engine.clock().await?.current;
            tracing::warn!(head = %self.hub.head(), %now, "the database lost a part of its history; ending all watches");
            self.hub.restart(now, epoch);
            return Ok(Vec::new());
        }
        match self.engine.changes(None, self.hub.head(), LOG_CHUNK).await {
            Ok(piece) => Ok(piece.changes),
            Err(Error::Expired { .. }) => {
                // This server was disconnected for longer than the log is kept: it continues from now, and
                // its watches list again.
                let now = self.engine.clock().await?.current;
                tracing::warn!(head = %self.hub.head(), %now, "the publisher fell behind the compaction mark; watches have to list again");
                self.hub.reset(now);
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Waits before a retry. Returns whether the task has to stop.
    async fn pause(&self) -> bool {
        let mut stop = self.stop.clone();
        tokio::time::timeout(RETRY, stop.wait_for(|stop| *stop)).await.is_ok()
    }

    /// Publishes the changes that are new. They follow the head without a gap, or the log could not be read
    /// before shutdown.
    async fn publish(&self, changes: Vec<Change>) {
        let head = self.hub.head();
        let mut fresh = changes.into_iter().filter(|change| change.revision > head).peekable();
        if fresh.peek().is_some_and(|first| first.revision == head.next()) {
            let bells = self.hub.publish(fresh.map(|change| Arc::new(SharedChange::new(change))).collect());
            bells.ring().await;
        }
    }
}
