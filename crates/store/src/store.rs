//! The store as its callers see it: an engine, a committer in front of it, and a hub behind it.

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

/// How long an answer waits for the end of all watches: for one look at the clock.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a store works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often history is compacted; `None` for never.
    pub compaction: Option<Duration>,
    /// History younger than this is kept, unless it takes more than `history_bytes`.
    pub retention: Duration,
    /// How many bytes history may take in the database. Beyond that the oldest of it is compacted early.
    pub history_bytes: u64,
    /// How many recent changes are kept in memory for watches.
    pub ring_events: usize,
    /// How many bytes of recent changes are kept in memory for watches.
    pub ring_bytes: usize,
    /// How many writes are committed at once, at most. A larger transaction is still committed, alone.
    pub batch_writes: usize,
    /// How many bytes are committed at once, at most. A larger transaction is still committed, alone.
    pub batch_bytes: usize,
    /// How many index entries (labels and selectable fields) are committed at once, at most. A larger transaction is still
    /// committed, alone.
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

/// How long history is kept, and how often it is compacted, unless somebody says otherwise.
const USUAL_HISTORY: Duration = Duration::from_secs(15 * 60);

impl Options {
    /// Keeps history for so long. It is compacted as often, but no less often than usual: of a long history little is removed at a
    /// time.
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
        // Watches may outlive the store: they learn that nothing will come any more.
        self.hub.close();
    }
}

impl Store {
    /// Starts a store on an engine that nobody else in this process uses.
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

    /// Writes all or nothing; gives one [`Written`] per write, in order, and none for a requirement. An update that changes nothing
    /// gives the revision that is.
    ///
    /// Dropping the future does not take the writes back: they may happen all the same.
    pub async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>, Error> {
        let written = self.inner.queue.write(writes).await?;
        match self.settled(Ok(written)).await {
            Err(error) => Err(Error::OutcomeUnknown { reason: error.to_string() }),
            written => written,
        }
    }

    /// Has writes wait until the guard is dropped, and then commits them together, as far as they fit in a batch. Whoever waits for
    /// a write while it holds waits for itself.
    pub async fn hold(&self) -> Hold {
        self.inner.queue.hold().await
    }

    /// The clock as it is now.
    pub async fn clock(&self) -> Result<ClockState, Error> {
        let clock = self.inner.engine.clock().await;
        self.settled(clock).await
    }

    /// Watches changes after `from`. [`Error::Expired`] where `from` is below the compaction mark. A `from` ahead of the clock
    /// is not refused: the watch waits until the clock has passed it. Where the database lost what was there, the clock is advanced
    /// past it, and the watch ends with [`Error::Expired`].
    pub async fn watch(&self, scope: WatchScope, from: Revision) -> Result<Watch, Error> {
        not_compacted(from, self.clock().await?)?;
        Ok(Watch::new(Arc::clone(&self.inner.hub), Arc::clone(&self.inner.engine), scope, from))
    }

    /// An answer of a database that lost a part of its history is given out when all watches of before have ended.
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

    /// Copies the database as it is at one revision, while writers go on; `None` where it has backups of its own.
    pub async fn backup(&self) -> Result<Option<Snapshot>, Error> {
        self.inner.engine.backup().await
    }

    /// Whether the last commit failed. The next one that succeeds clears it; no query is made to find out.
    #[must_use]
    pub fn commits_fail(&self) -> bool {
        self.inner.health.commits_fail()
    }

    /// For how long committed changes have been waiting to reach watches; zero where none are.
    #[must_use]
    pub fn publisher_lag(&self) -> Duration {
        self.inner.health.publisher_lag()
    }

    /// Resolves with the first task, of the store or of its engine, that ended early; never where none does. Without that task the
    /// store refuses writes or hides them from watches, so most users end the process.
    pub async fn failed(&self) -> TaskFailure {
        tokio::select! {
            failure = self.inner.tasks.failed() => failure,
            failure = self.inner.engine.failed() => failure,
        }
    }

    /// Makes the task of this name panic. Says whether there is one.
    #[cfg(feature = "faults")]
    pub fn inject_fault(&self, name: &str) -> bool {
        self.inner.tasks.inject_fault(name)
    }

    /// Commits what is queued, ends the tasks and all watches, and closes the engine. Later calls answer [`Error::Unavailable`].
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
