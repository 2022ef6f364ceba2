//! The metrics of work queues, by Kubernetes' names.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The counters of one queue.
#[derive(Debug)]
pub(crate) struct Counts {
    adds: AtomicU64,
    retries: AtomicU64,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
}

impl Default for Counts {
    fn default() -> Self {
        // As in Kubernetes: from ten nanoseconds to a thousand seconds.
        let histogram = || Histogram::new(exponential_buckets(1e-8, 10.0, 12));
        Self {
            adds: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            queue_duration: histogram(),
            work_duration: histogram(),
        }
    }
}

impl Counts {
    /// A key was added.
    pub(crate) fn added(&self) {
        self.adds.fetch_add(1, Ordering::Relaxed);
    }

    /// A key failed, and comes back.
    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker took a key that had waited so long.
    pub(crate) fn taken(&self, waited: Duration) {
        self.queue_duration.observe(waited.as_secs_f64());
    }

    /// A worker has finished with a key after so long.
    pub(crate) fn worked(&self, time: Duration) {
        self.work_duration.observe(time.as_secs_f64());
    }

    pub(crate) fn adds(&self) -> u64 {
        self.adds.load(Ordering::Relaxed)
    }

    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

/// A queue at one moment.
pub(crate) struct Snapshot<'a> {
    /// The keys that wait.
    pub(crate) depth: usize,
    /// The time that all present workers have spent so far.
    pub(crate) unfinished: Duration,
    /// The time that the slowest of them has spent.
    pub(crate) longest_running: Duration,
    pub(crate) counts: &'a Counts,
}

/// A queue whose keys may be of any type.
pub(crate) trait Measured: Send + Sync {
    fn snapshot(&self) -> Snapshot<'_>;
}

/// The measurements of one controller's queue.
#[derive(Clone)]
pub struct QueueMetrics(pub(crate) Arc<dyn Measured>);

/// The queue metrics of all controllers of a process. Clones are the same.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Vec<Named>>>);

type Named = (Cow<'static, str>, QueueMetrics);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Registers the metrics of all controllers that will be started with this.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Shows the queue of a controller, in place of the one that it had when it was started before.
    pub fn show(&self, name: impl Into<Cow<'static, str>>, queue: QueueMetrics) {
        let name = name.into();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| *known != name);
        all.push((name, queue));
    }
}

/// A number of a queue, with its name and its help text.
type Number<T> = (&'static str, &'static str, fn(&Snapshot<'_>) -> T);

const COUNTERS: [Number<u64>; 2] = [
    ("workqueue_adds", "Total number of adds handled by workqueue", |queue| queue.counts.adds()),
    ("workqueue_retries", "Total number of retries handled by workqueue", |queue| queue.counts.retries()),
];

const DEPTH: Number<u64> = ("workqueue_depth", "Current depth of workqueue", |queue| queue.depth as u64);

const SECONDS: [Number<f64>; 2] = [
    (
        "workqueue_unfinished_work_seconds",
        "Seconds of work that is in progress and has not been observed by work_duration",
        |queue| queue.unfinished.as_secs_f64(),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "Seconds that the longest running worker has been busy with one key",
        |queue| queue.longest_running.as_secs_f64(),
    ),
];

const HISTOGRAMS: [Number<Histogram>; 2] = [
    (
        "workqueue_queue_duration_seconds",
        "Seconds that a key stays in workqueue before a worker takes it",
        |queue| queue.counts.queue_duration.clone(),
    ),
    ("workqueue_work_duration_seconds", "Seconds that a worker needs for a key from workqueue", |queue| {
        queue.counts.work_duration.clone()
    }),
];

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, help, value) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (controller, queue) in all.iter() {
                let value = value(&queue.0.snapshot());
                metric
                    .encode_family(&[("name", &**controller)])?
                    .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
        }
        let (name, help, value) = DEPTH;
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (controller, queue) in all.iter() {
            let value = value(&queue.0.snapshot());
            metric.encode_family(&[("name", &**controller)])?.encode_gauge(&value)?;
        }
        for (name, help, value) in SECONDS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (controller, queue) in all.iter() {
                let value = value(&queue.0.snapshot());
                metric.encode_family(&[("name", &**controller)])?.encode_gauge(&value)?;
            }
        }
        for (name, help, value) in HISTOGRAMS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for (controller, queue) in all.iter() {
                value(&queue.0.snapshot()).encode(metric.encode_family(&[("name", &**controller)])?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkQueue;

    #[test]
    fn counts_are_shown_by_controller() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let queue = WorkQueue::default();
        metrics.show("one", QueueMetrics(WorkQueue::<u32>::default().measured()));
        metrics.show("one", QueueMetrics(queue.measured()));
        queue.add(1);
        queue.add(2);
        queue.add(3);
        assert_eq!(queue.next_now(), Some(1));
        queue.retry(1);
        queue.done(&1);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "workqueue_adds_total{name=\"one\"} 3",
            "workqueue_retries_total{name=\"one\"} 1",
            "workqueue_depth{name=\"one\"} 2",
            "workqueue_unfinished_work_seconds{name=\"one\"} 0.0",
            "workqueue_queue_duration_seconds_count{name=\"one\"} 1",
            "workqueue_work_duration_seconds_bucket{le=\"+Inf\",name=\"one\"} 1",
        ] {
            assert_eq!(text.matches(&format!("\n{line}\n")).count(), 1, "{line} in {text}");
        }
    }
}
