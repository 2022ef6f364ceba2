//! What queues count, under the names that Kubernetes has for it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// What one queue has counted.
#[derive(Debug, Default)]
pub struct Counts {
    adds: AtomicU64,
    retries: AtomicU64,
    depth: AtomicU64,
}

impl Counts {
    /// A key was added, of which so many wait now.
    pub(crate) fn added(&self, depth: usize) {
        self.adds.fetch_add(1, Ordering::Relaxed);
        self.waiting(depth);
    }

    /// So many keys wait.
    pub(crate) fn waiting(&self, depth: usize) {
        self.depth.store(depth as u64, Ordering::Relaxed);
    }

    /// A key failed.
    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }
}

/// The counts of all controllers of a process. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Vec<Named>>>);

/// The name of a controller, and what its queue counts.
type Named = (&'static str, Arc<Counts>);

/// One of the numbers that queues count.
type Counter = fn(&Counts) -> &AtomicU64;

impl Metrics {
    /// Shows the counts of all controllers that will be started with this.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Shows the counts of a controller, in the place of those that it had when it was started before.
    pub(crate) fn show(&self, name: &'static str, counts: Arc<Counts>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| *known != name);
        all.push((name, counts));
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counters: [(&str, &str, Counter); 2] = [
            ("workqueue_adds", "Keys that were added to the queue of a controller", |counts| &counts.adds),
            ("workqueue_retries", "Keys that a controller has to look at again after a failure", |counts| {
                &counts.retries
            }),
        ];
        for (name, help, value) in counters {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (controller, counts) in all.iter() {
                let value = value(counts).load(Ordering::Relaxed);
                metric
                    .encode_family(&[("name", *controller)])?
                    .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
        }
        let help = "Keys that wait in the queue of a controller";
        let mut metric = encoder.encode_descriptor("workqueue_depth", help, None, MetricType::Gauge)?;
        for (controller, counts) in all.iter() {
            let value = i64::try_from(counts.depth.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
            metric.encode_family(&[("name", *controller)])?.encode_gauge(&value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_by_controller() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let counts = Arc::new(Counts::default());
        metrics.show("one", Arc::new(Counts::default()));
        metrics.show("one", Arc::clone(&counts));
        counts.added(1);
        counts.added(2);
        counts.retried();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "workqueue_adds_total{name=\"one\"} 2",
            "workqueue_retries_total{name=\"one\"} 1",
            "workqueue_depth{name=\"one\"} 2",
        ] {
            assert_eq!(text.matches(&format!("\n{line}\n")).count(), 1, "{line} in {text}");
        }
    }
}
