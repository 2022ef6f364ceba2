//! Metrics of reloaded files, named like those of kube-apiserver's authentication configuration.

use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use process::reload::Outcome;
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use prometheus_client::registry::Registry;

type Labels = [(&'static str, &'static str); 2];

/// Counts reloads by file and status. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReloadMetrics {
    reloads: Family<Labels, Counter>,
    last: Family<Labels, Gauge<f64, AtomicU64>>,
}

impl ReloadMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "orlop_file_automatic_reloads",
            "Reloads of CA, token and key files, by the flag that names the file and by status",
            metrics.reloads.clone(),
        );
        registry.register(
            "orlop_file_automatic_reload_last_timestamp_seconds",
            "The time of the last reload, by the flag that names the file and by status",
            metrics.last.clone(),
        );
        metrics
    }

    /// Counts a reload.
    pub(crate) fn note(&self, file: &'static str, outcome: Outcome) {
        let status = match outcome {
            Outcome::Reloaded => "success",
            Outcome::Failed => "failure",
        };
        let labels = [("file", file), ("status", status)];
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.reloads.get_or_create(&labels).inc();
        self.last.get_or_create(&labels).set(now.as_secs_f64());
    }
}
