//! Logs, traces and metrics of requests.

use std::time::Duration;

use http::{Method, Uri};
use model::error::Error;
use mount::Unauthenticated;

use super::RequestInfo;
use super::failure::OwnForm;
use crate::api::ApiServer;
use crate::metrics::{LatencyLabels, RequestLabels};
use crate::request::path::ResourcePath;
use crate::request::verb::Verb;

/// Slower requests are logged.
const SLOW: Duration = Duration::from_secs(1);

/// The method and URI of a request for its log line.
pub(super) struct RequestHead {
    pub method: Method,
    pub uri: Uri,
}

impl RequestHead {
    /// The error format, if the path belongs to a mount.
    pub fn form<'a>(
        &'a self,
        api: &'a ApiServer,
        unauthenticated: Option<Unauthenticated>,
    ) -> Option<OwnForm<'a>> {
        let path = self.uri.path();
        api.mounts.find(path).map(|mount| OwnForm { mount, path, unauthenticated })
    }

    pub fn log(&self, code: u16, elapsed: Duration, error: Option<&Error>) {
        let Self { method, uri } = self;
        let (path, micros) = (uri.path(), elapsed.as_micros());
        match error {
            Some(error @ (Error::Internal { .. } | Error::Unavailable { .. })) => {
                tracing::error!(%method, path, code, micros, %error, "request failed");
            }
            _ if elapsed >= SLOW => tracing::info!(%method, path, code, micros, "request was slow"),
            _ => tracing::debug!(code, micros, "request completed"),
        }
    }
}

/// The span is at debug level, so it costs nothing without debug logs; its kind makes trace exporters take it anyway.
pub(super) fn span(info: &Result<RequestInfo, Error>) -> tracing::Span {
    match info {
        Ok(RequestInfo::Resource { verb, path }) => tracing::debug_span!(
            "request",
            otel.kind = "server",
            verb = verb.as_str(),
            group = path.group,
            resource = path.resource,
            subresource = path.subresource,
            namespace = path.namespace,
            name = path.name,
            code = tracing::field::Empty,
        ),
        Ok(RequestInfo::Plain { method, path }) => tracing::debug_span!(
            "request",
            otel.kind = "server",
            verb = method,
            path,
            code = tracing::field::Empty,
        ),
        Ok(RequestInfo::Mounted { method, path, mount, .. }) => tracing::debug_span!(
            "request",
            otel.kind = "server",
            verb = method,
            path,
            mount = mount.prefix(),
            code = tracing::field::Empty,
        ),
        Ok(RequestInfo::UnsupportedMethod { .. }) | Err(_) => {
            tracing::debug_span!("request", otel.kind = "server", code = tracing::field::Empty)
        }
    }
}

/// Labels come from the registry, never from client input, so the number of series is bounded.
pub(super) fn labels(api: &ApiServer, info: &RequestInfo) -> RequestLabels {
    let known = |path: &ResourcePath| {
        let registry = api.registry();
        let found = registry.find(&path.group, &path.version, &path.resource);
        found.is_some_and(|found| found.verbs_of(&path.subresource).is_some())
    };
    match info {
        RequestInfo::Resource { verb, path } if known(path) => RequestLabels {
            verb: verb.to_string(),
            group: path.group.clone(),
            resource: path.resource.clone(),
            subresource: path.subresource.clone(),
            code: 0,
        },
        RequestInfo::Resource { verb, .. } => of_no_resource(verb.as_str()),
        RequestInfo::UnsupportedMethod { verb, .. } => of_no_resource(verb),
        RequestInfo::Plain { method, .. } => of_no_resource(method),
        RequestInfo::Mounted { method, mount, .. } => {
            RequestLabels { resource: mount.prefix().to_owned(), ..of_no_resource(method) }
        }
    }
}

pub(super) fn of_no_resource(verb: &str) -> RequestLabels {
    const KNOWN: [&str; 7] = ["get", "head", "options", "post", "put", "patch", "delete"];
    let known = KNOWN.contains(&verb) || Verb::ALL.iter().any(|v| v.as_str() == verb);
    RequestLabels {
        verb: if known { verb } else { "other" }.to_owned(),
        group: String::new(),
        resource: String::new(),
        subresource: String::new(),
        code: 0,
    }
}

pub(super) fn count(api: &ApiServer, mut labels: RequestLabels, code: u16, elapsed: Duration) {
    labels.code = code;
    let latency = LatencyLabels { verb: labels.verb.clone(), resource: labels.resource.clone() };
    api.metrics.seconds.get_or_create(&latency).observe(elapsed.as_secs_f64());
    api.metrics.requests.get_or_create(&labels).inc();
}
