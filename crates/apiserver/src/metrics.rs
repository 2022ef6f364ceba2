//! Metrics of the pipeline, under Kubernetes' names.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The verb, or the method of a non-resource path.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The resource, or the prefix of a mount; empty for non-resource paths.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The status code.
    pub code: u16,
}

/// The labels of a latency.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct LatencyLabels {
    /// The verb, or the method of a non-resource path.
    pub verb: String,
    /// The resource, or the prefix of a mount; empty for non-resource paths.
    pub resource: String,
}

/// The metrics of the pipeline.
#[derive(Clone)]
pub struct ApiMetrics {
    /// Answered requests.
    pub requests: Family<RequestLabels, Counter>,
    /// Seconds from the request head to the response head.
    pub seconds: Family<LatencyLabels, Histogram>,
    /// Requests in flight.
    pub in_flight: Gauge<i64, AtomicI64>,
    /// Requests that ended in a panic.
    pub panics: Counter,
    /// Open watches and streams of mounts.
    pub watches: Gauge<i64, AtomicI64>,
}

impl ApiMetrics {
    /// Creates and registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.000_1, 2.0, 18))),
            in_flight: Gauge::default(),
            panics: Counter::default(),
            watches: Gauge::default(),
        };
        registry.register("apiserver_request", "Answered requests", metrics.requests.clone());
        let help = "Seconds from the head of a request to the head of its answer";
        registry.register("apiserver_request_duration_seconds", help, metrics.seconds.clone());
        let help = "Requests that are being answered now";
        registry.register("apiserver_current_inflight_requests", help, metrics.in_flight.clone());
        let help = "Requests that ended in a panic of the server";
        registry.register("orlop_request_panics", help, metrics.panics.clone());
        let help = "Open watches and streams of mounts";
        registry.register("apiserver_longrunning_requests", help, metrics.watches.clone());
        metrics
    }
}

/// Increments a gauge for as long as it lives.
pub struct Counted(Gauge<i64, AtomicI64>);

impl Counted {
    /// Increments the gauge.
    pub fn new(gauge: &Gauge<i64, AtomicI64>) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
