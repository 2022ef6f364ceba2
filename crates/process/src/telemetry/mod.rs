//! Traces to an OpenTelemetry collector, by OTLP over HTTP, if an endpoint is given.

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

/// The path of the collector's trace receiver, below the given endpoint.
const TRACES_PATH: &str = "/v1/traces";

/// The interval at which finished spans are sent. The batch thread sleeps in between.
const INTERVAL: Duration = Duration::from_secs(2);

/// Spans beyond this are dropped, which bounds the memory while the collector is unavailable.
const QUEUE_SIZE: usize = 4096;

/// An unavailable collector must not delay the exit of the process, which has a second in all.
const FINISH_TIMEOUT: Duration = Duration::from_millis(100);

/// The URL of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// A text that is no collector URL.
#[derive(Debug, Error)]
#[error("invalid collector URL `{0}`: give http://HOST:PORT, such as http://127.0.0.1:4318")]
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

/// The exporter could not be created.
#[derive(Debug, Error)]
#[error("cannot export traces: {0}")]
pub struct Error(#[from] opentelemetry_otlp::ExporterBuildError);

/// Exports the spans of this process: collects them, and sends them in batches from a thread.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends to `endpoint`, as the service `name`. Nothing is sent before spans end.
    ///
    /// # Errors
    /// When the exporter rejects its configuration.
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

    /// The layer that converts tracing's spans to OpenTelemetry's.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        // Code locations and thread names triple the size of a span without helping its readers.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("orlop"))
            .with_location(false)
            .with_threads(false)
    }

    /// Sends the remaining spans, with a short time limit because the process exits.
    pub fn finish(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FINISH_TIMEOUT) {
            tracing::warn!(%error, "cannot send the last traces to the collector");
        }
    }
}

#[cfg(test)]
mod tests;
