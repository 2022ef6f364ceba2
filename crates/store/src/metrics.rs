//! Metrics of the store.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Handles to the store's metrics. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub(crate) batch_writes: Histogram,
    pub(crate) commit_seconds: Histogram,
    pub(crate) watchers: Gauge,
    pub(crate) events: Counter,
    pub(crate) ring_bytes: Gauge,
    pub(crate) log_reads: Counter,
    pub(crate) lost_histories: Counter,
    pub(crate) compacted: Gauge,
    pub(crate) compactions: Counter,
    pub(crate) compaction_failures: Counter,
    pub(crate) early_compactions: Counter,
    pub(crate) history_bytes: Gauge,
}

impl Metrics {
    /// Registers all metrics.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::unregistered();
        registry.register("store_batch_writes", "Writes per commit", metrics.batch_writes.clone());
        registry.register_with_unit(
            "store_commit",
            "How long a commit takes",
            Unit::Seconds,
            metrics.commit_seconds.clone(),
        );
        registry.register("store_watchers", "Open watches", metrics.watchers.clone());
        registry.register("store_events", "Changes published to watches", metrics.events.clone());
        registry.register_with_unit(
            "store_ring",
            "Memory for recent changes",
            Unit::Bytes,
            metrics.ring_bytes.clone(),
        );
        registry.register(
            "store_watch_log_reads",
            "Pieces of the log that watches read because they were behind the recent changes",
            metrics.log_reads.clone(),
        );
        registry.register(
            "store_lost_histories",
            "Times that all watches ended because the database had lost commits, moved or was advanced",
            metrics.lost_histories.clone(),
        );
        registry.register("store_compacted_revision", "The compaction mark", metrics.compacted.clone());
        registry.register("store_compactions", "Runs of compaction", metrics.compactions.clone());
        registry.register(
            "store_compaction_failures",
            "Runs of compaction that failed",
            metrics.compaction_failures.clone(),
        );
        registry.register(
            "store_early_compactions",
            "Compactions because history took more than its byte budget",
            metrics.early_compactions.clone(),
        );
        registry.register_with_unit(
            "store_history",
            "Old revisions in the database, when they were last looked at",
            Unit::Bytes,
            metrics.history_bytes.clone(),
        );
        metrics
    }

    /// Metrics of a store without a registry.
    pub fn unregistered() -> Self {
        Self {
            batch_writes: Histogram::new(exponential_buckets(1.0, 4.0, 6)),
            commit_seconds: Histogram::new(exponential_buckets(0.000_05, 3.0, 10)),
            watchers: Gauge::default(),
            events: Counter::default(),
            ring_bytes: Gauge::default(),
            log_reads: Counter::default(),
            lost_histories: Counter::default(),
            compacted: Gauge::default(),
            compactions: Counter::default(),
            compaction_failures: Counter::default(),
            early_compactions: Counter::default(),
            history_bytes: Gauge::default(),
        }
    }
}
