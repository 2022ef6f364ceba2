//! Compaction: by hand to a revision, or by the clock to what is older than the retention.

use std::sync::Arc;
use std::time::Duration;

use model::Revision;
use tokio::sync::watch;

use crate::engine::{Engine, Sweep};
use crate::metrics::Metrics;
use crate::types::Error;

/// Revisions per step: a few milliseconds in which no write can commit.
const STEP: u64 = 1000;

/// Compacts to a revision, in small steps.
pub(crate) async fn compact(engine: &dyn Engine, through: Revision, metrics: &Metrics) -> Result<(), Error> {
    while engine.compact(through, STEP).await? == Sweep::More {}
    metrics.compacted.set(i64::try_from(through.0).unwrap_or(i64::MAX));
    Ok(())
}

/// Compacts every `interval` until it is told to stop.
pub(crate) async fn compactor(
    engine: Arc<dyn Engine>,
    interval: Duration,
    retention: Duration,
    mut stop: watch::Receiver<bool>,
    metrics: Metrics,
) {
    // The first run comes sooner, so that a server that is often restarted still compacts.
    let mut pause = interval / 10;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        pause = interval;
        let run = async { compact(&*engine, engine.older_than(retention).await?, &metrics).await };
        tokio::select! {
            result = run => match result {
                Ok(()) => {
                    metrics.compactions.inc();
                }
                Err(error) => {
                    metrics.compaction_failures.inc();
                    tracing::warn!(%error, "compaction failed, the next run tries again");
                }
            },
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}
