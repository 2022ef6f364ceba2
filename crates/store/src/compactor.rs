//! Compaction: on request to a revision, periodically by retention, and early when history exceeds its byte
//! budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::Revision;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use crate::engine::{Engine, Sweep};
use crate::metrics::Metrics;
use crate::types::Error;

/// Revisions per step, at most: a few milliseconds in which no write can commit.
const STEP: u64 = 1000;

/// Bytes per step, about: large objects take longer to remove.
const STEP_BYTES: u64 = 16 << 20;

/// The compactor checks the size of the history each time this fraction of its budget was written.
const LOOKS: u64 = 16;

/// Schedule of the compactor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Interval between runs by retention; `None` for never.
    pub interval: Option<Duration>,
    pub retention: Duration,
    /// Bytes of history above which it is compacted early.
    pub budget: u64,
}

/// Counts the bytes that this server writes, and triggers a check of the history's size.
#[derive(Debug)]
pub(crate) struct Pressure {
    written: AtomicU64,
    step: u64,
    due: Notify,
}

impl Pressure {
    /// For a history of at most `budget` bytes.
    pub fn new(budget: u64) -> Self {
        Self { written: AtomicU64::new(0), step: (budget / LOOKS).max(1), due: Notify::new() }
    }

    /// Adds bytes that were written.
    pub fn add(&self, bytes: u64) {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        if before / self.step != before.wrapping_add(bytes) / self.step {
            self.due.notify_one();
        }
    }
}

/// Compacts to a revision, in small steps.
pub(crate) async fn compact(
    engine: &dyn Engine,
    through: Revision,
    metrics: &Metrics,
) -> Result<Sweep, Error> {
    let (bytes, clock) = (engine.history_bytes().await?, engine.clock().await?);
    let changes = clock.current.0.saturating_sub(clock.compacted.0).max(1);
    let step = (STEP_BYTES / (bytes / changes).max(1)).clamp(1, STEP);
    let swept = loop {
        match engine.compact(through, step).await? {
            Sweep::More => {}
            swept => break swept,
        }
    };
    metrics.compacted.set(i64::try_from(through.0).unwrap_or(i64::MAX));
    Ok(swept)
}

/// Compacts by schedule, and whenever history exceeds its budget, until shutdown.
pub(crate) async fn compactor(
    engine: Arc<dyn Engine>,
    pace: Pace,
    pressure: Arc<Pressure>,
    mut stop: watch::Receiver<bool>,
    metrics: Metrics,
) {
    // The first run comes sooner, so that a server that is often restarted still compacts.
    let mut next = pace.interval.map(|interval| Instant::now() + interval / 10);
    loop {
        let is_time = tokio::select! {
            () = reached(next) => true,
            () = pressure.due.notified() => false,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        if is_time {
            next = pace.interval.map(|interval| Instant::now() + interval);
        }
        let run = async {
            if is_time {
                compact(&*engine, engine.older_than(pace.retention).await?, &metrics).await?;
                metrics.compactions.inc();
            }
            within_budget(&*engine, pace.budget, &metrics).await
        };
        tokio::select! {
            result = run => if let Err(error) = result {
                metrics.compaction_failures.inc();
                tracing::warn!(%error, "compaction failed; the next run retries");
            },
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Removes the older half of the history repeatedly until the rest fits the budget.
async fn within_budget(engine: &dyn Engine, budget: u64, metrics: &Metrics) -> Result<(), Error> {
    loop {
        let bytes = engine.history_bytes().await?;
        metrics.history_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        let clock = engine.clock().await?;
        if bytes <= budget || clock.compacted >= clock.current {
            return Ok(());
        }
        let through = Revision(clock.compacted.0 + (clock.current.0 - clock.compacted.0).div_ceil(2));
        tracing::warn!(bytes, budget, %through, "history takes more than its byte budget; compacting early");
        metrics.early_compactions.inc();
        // Another server is sweeping and does the rest.
        if compact(engine, through, metrics).await? == Sweep::Busy {
            return Ok(());
        }
    }
}
