//! Traces to an OpenTelemetry collector, by OTLP over HTTP, when an endpoint is given.

use std::{fmt, str::FromStr, time::Duration};

use hyper::Uri;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use thiserror::Error;
use tracing::Subscriber;
use tracing_subscriber::{Layer, registry::LookupSpan};

use self::client::CollectorClient;

mod client;

/// Where the collector takes traces, below the endpoint that a person gives.
const TRACES_PATH: &str = "/v1/traces";

/// How often finished spans are sent. The batch thread sleeps in between.
const INTERVAL: Duration = Duration::from_secs(2);

/// Spans beyond this wait in vain: a collector that is away costs memory only up to here.
const QUEUE_SIZE: usize = 4096;

/// A collector that is down must not hold up the end of the process, which has a second in all.
const FINISH_TIMEOUT: Duration = Duration::from_millis(100);

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// An address that cannot be a collector's.
#[derive(Debug, Error)]
#[error("`{0}` is no address of a collector: give http://HOST:PORT, such as http://127.0.0.1:4318")]
pub struct BadEndpoint(String);

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        let bad = || BadEndpoint(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| bad())?;
        if uri.scheme_str() != Some("http") || uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(bad());
        }
        let base = text.trim_end_matches('/');
        let full = if base.ends_with(TRACES_PATH) { base.to_owned() } else { format!("{base}{TRACES_PATH}") };
        Ok(Self(full.parse().map_err(|_| bad())?))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The exporter could not be set up.
#[derive(Debug, Error)]
#[error("traces cannot be exported: {0}")]
pub struct Error(#[from] opentelemetry_otlp::ExporterBuildError);

/// The way of this process's spans to a collector: gathered, and sent in batches by a thread of its own.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends to `endpoint`, as the service `name`. Nothing is sent before spans end.
    ///
    /// # Errors
    /// When the exporter refuses its configuration.
    pub fn to(endpoint: &Endpoint, name: &'static str, version: &'static str) -> Result<Self, Error> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.to_string())
            .build()?;
        let batches = BatchConfigBuilder::default()
            .with_scheduled_delay(INTERVAL)
            .with_max_queue_size(QUEUE_SIZE)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        let version = opentelemetry::KeyValue::new("service.version", version);
        let resource = Resource::builder_empty().with_service_name(name).with_attribute(version).build();
        Ok(Self {
            provider: SdkTracerProvider::builder()
                .with_span_processor(processor)
                .with_resource(resource)
                .build(),
        })
    }

    /// The layer that turns tracing's spans into OpenTelemetry's.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        // Code locations and thread names triple the size of a span and help nobody who reads a trace.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("orlop"))
            .with_location(false)
            .with_threads(false)
    }

    /// Sends what is still held, within a time that the end of a process can spare.
    pub fn finish(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FINISH_TIMEOUT) {
            tracing::warn!(%error, "the last traces did not reach the collector");
        }
    }
}

#[cfg(test)]
mod tests;
