//! The store's interface: an engine, a committer in front of it, and a hub behind it.

use std::sync::Arc;
use std::time::Duration;

use model::{ObjectKey, Revision};
use tasks::{TaskFailure, Tasks};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::committer::{BatchLimits, Hold, Queue, committer};
use crate::compactor::{Pace, Pressure, compact, compactor};
use crate::engine::{Engine, Snapshot};
use crate::event::WatchScope;
use crate::health::Health;
use crate::hub::{Hub, RingLimits, Watch, publisher};
use crate::listing::not_compacted;
use crate::metrics::Metrics;
use crate::types::{ClockState, Error, ListQuery, Page, Stored, Write, Written};

/// Longest wait of an answer for the end of all watches: for one check of the clock.
const PATIENCE: Duration = Duration::from_secs(30);

/// Options of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interval between compactions; `None` for never.
    pub compaction: Option<Duration>,
    /// History younger than this is kept, unless it takes more than `history_bytes`.
    pub retention: Duration,
    /// Bytes that history may take in the database. Above that the oldest part is compacted early.
    pub history_bytes: u64,
    /// Number of recent changes kept in memory for watches.
    pub ring_events: usize,
    /// Bytes of recent changes kept in memory for watches.
    pub ring_bytes: usize,
    /// Most writes per commit. A larger transaction is committed alone.
    pub batch_writes: usize,
    /// Most bytes per commit. A larger transaction is committed alone.
    pub batch_bytes: usize,
    /// Most index entries (labels and selectable fields) per commit. A larger transaction is committed alone.
    pub batch_entries: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            compaction: Some(USUAL_HISTORY),
            retention: USUAL_HISTORY,
            history_bytes: 1 << 30,
            ring_events: 32_768,
            ring_bytes: 64 << 20,
            batch_writes: 1000,
            batch_bytes: 8 << 20,
            batch_entries: 10_000,
        }
    }
}

/// Default retention of history, and default interval between compactions.
const USUAL_HISTORY: Duration = Duration::from_secs(15 * 60);

impl Options {
    /// Keeps history for this long. It is compacted as often, but no less often than by default: of a long
    /// history little is removed at a time.
    pub fn keeping(history: Duration) -> Self {
        Self { compaction: Some(history.min(USUAL_HISTORY)), retention: history, ..Self::default() }
    }
}

/// A revisioned object log. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<dyn Engine>,
    queue: Queue,
    hub: Arc<Hub>,
    health: Arc<Health>,
    metrics: Metrics,
    stop: watch::Sender<bool>,
    /// The committer, the publisher, the compactor. They end with the last clone at the latest.
    tasks: Tasks,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Watches may outlive the store: they learn that no more events will come.
        self.hub.close();
    }
}

impl Store {
    /// Starts a store on an engine that nothing else in this process uses.
    pub async fn open(engine: Arc<dyn Engine>, options: Options, metrics: &Metrics) -> Result<Self, Error> {
        let epoch = engine.epoch();
        let clock = engine.clock().await?;
        metrics.compacted.set(i64::try_from(clock.compacted.0).unwrap_or(i64::MAX));
        let ring = RingLimits { events: options.ring_events, bytes: options.ring_bytes };
        let hub = Arc::new(Hub::new(clock.current, epoch, ring, metrics.clone()));
        let health = Arc::new(Health::default());
        let (stop, stopped) = watch::channel(false);
        let (outlet, publishing) =
            publisher(Arc::clone(&hub), Arc::clone(&engine), stopped.clone(), Arc::clone(&health));
        let limits = BatchLimits {
            writes: options.batch_writes,
            bytes: options.batch_bytes,
            entries: options.batch_entries,
        };
        let pressure = Arc::new(Pressure::new(options.history_bytes));
        let (queue, committing) = committer(
            Arc::clone(&engine),
            outlet,
            Arc::clone(&pressure),
            limits,
            stopped.clone(),
            metrics.clone(),
            Arc::clone(&health),
        );
        let tasks = Tasks::default();
        tasks.start("the publisher", publishing);
        tasks.start("the committer", committing);
        let pace = Pace {
            interval: options.compaction,
            retention: options.retention,
            budget: options.history_bytes,
        };
        let compacting = compactor(Arc::clone(&engine), pace, pressure, stopped, metrics.clone());
        tasks.start("the compactor", compacting);
        Ok(Self {
            inner: Arc::new(Inner { engine, queue, hub, health, metrics: metrics.clone(), stop, tasks }),
        })
    }

    /// One object, as of now or as of an older revision.
    pub async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        let found = self.inner.engine.get(key, at).await;
        self.settled(found).await
    }

    /// A page of objects in key order.
    pub async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        let page = self.inner.engine.list(query).await;
        self.settled(page).await
    }

    /// Writes all or nothing; returns one [`Written`] per write, in order, and none for a requirement. An
    /// update that changes nothing returns the present revision.
    ///
    /// Dropping the future does not take the writes back: they may happen all the same.
    pub async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>, Error> {
        let written = self.inner.queue.write(writes).await?;
        match self.settled(Ok(written)).await {
            Err(error) => Err(Error::OutcomeUnknown { reason: error.to_string() }),
            written => written,
        }
    }

    /// Holds writes until the guard is dropped, and then commits them together, as far as they fit in a
    /// batch. A caller that awaits a write while it holds the guard deadlocks.
    pub async fn hold(&self) -> Hold {
        self.inner.queue.hold().await
    }

    /// The clock as it is now.
    pub async fn clock(&self) -> Result<ClockState, Error> {
        let clock = self.inner.engine.clock().await;
        self.settled(clock).await
    }

    /// Watches changes after `from`. [`Error::Expired`] if `from` is below the compaction mark. A `from`
    /// ahead of the clock is not refused: the watch waits until the clock has passed it. If the database lost
    /// that part of its history, the clock is advanced past it, and the watch ends with [`Error::Expired`].
    pub async fn watch(&self, scope: WatchScope, from: Revision) -> Result<Watch, Error> {
        not_compacted(from, self.clock().await?)?;
        Ok(Watch::new(Arc::clone(&self.inner.hub), Arc::clone(&self.inner.engine), scope, from))
    }

    /// Delays an answer of a database that lost a part of its history until all earlier watches have ended.
    async fn settled<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        let Inner { engine, hub, .. } = &*self.inner;
        let epoch = engine.epoch();
        if hub.epoch() < epoch && timeout(PATIENCE, hub.reaches(epoch)).await.is_err() {
            let reason = "the watches of a lost history do not end".to_owned();
            return Err(Error::Unavailable { reason });
        }
        answer
    }

    /// Sets the compaction mark, then removes history below it in small steps.
    pub async fn compact(&self, through: Revision) -> Result<(), Error> {
        compact(&*self.inner.engine, through, &self.inner.metrics).await.map(drop)
    }

    /// Copies the database at one revision, while writers go on; `None` if it has backups of its own.
    pub async fn backup(&self) -> Result<Option<Snapshot>, Error> {
        self.inner.engine.backup().await
    }

    /// Whether the last commit failed. The next success clears it; no query is made to find out.
    #[must_use]
    pub fn commits_fail(&self) -> bool {
        self.inner.health.commits_fail()
    }

    /// Age of the oldest committed change that has not reached the watches; zero if there is none.
    #[must_use]
    pub fn publisher_lag(&self) -> Duration {
        self.inner.health.publisher_lag()
    }

    /// Resolves with the first task, of the store or of its engine, that ended early; never if none does.
    /// Without that task the store refuses writes or hides them from watches, so most users end the process.
    pub async fn failed(&self) -> TaskFailure {
        tokio::select! {
            failure = self.inner.tasks.failed() => failure,
            failure = self.inner.engine.failed() => failure,
        }
    }

    /// Makes the task of this name panic. Returns whether there is one.
    #[cfg(feature = "faults")]
    pub fn inject_fault(&self, name: &str) -> bool {
        self.inner.tasks.inject_fault(name)
    }

    /// Commits the queued writes, ends the tasks and all watches, and closes the engine. Later calls return
    /// [`Error::Unavailable`].
    pub async fn close(&self) {
        self.inner.tasks.stop();
        self.inner.stop.send_replace(true);
        self.inner.tasks.join().await;
        if let Some(failure) = self.inner.tasks.failure() {
            tracing::error!(%failure, "a task of the store ended early");
        }
        self.inner.hub.close();
        self.inner.engine.close().await;
    }
}

#[cfg(test)]
#[cfg(feature = "conformance")]
mod tests;
