//! `/healthz`, `/livez`, `/readyz` and `/metrics` of a program that runs alone, with Kubernetes' paths, parameters and texts.
//!
//! ```no_run
//! use controller::health::{Health, HealthServer};
//!
//! # async fn start(
//! #     context: controller::Context<controller::ObjectKey>, leadership: controller::leader::Leadership,
//! #     registry: prometheus_client::registry::Registry, shutdown: process::Shutdown,
//! # ) -> std::io::Result<()> {
//! let health = Health::default();
//! health.ready("informer-sync", move || context.subscriptions.check());
//! health.live("leader-election", move || leadership.check());
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:8080").await?;
//! HealthServer::new(health).metrics(registry).run(listener, shutdown).await;
//! # Ok(()) }
//! ```
//!
//! `/livez` and `/healthz` have the checks that a restart may repair; `/readyz` has all of them, and fails while the program stops. `?verbose`
//! shows each check, `?exclude=NAME` skips one, and `/readyz/NAME` is the answer of one check alone.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use process::Shutdown;
use process::http_server::{self, Handler, Limits, text};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

/// The media type of metrics.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const NOSNIFF: HeaderName = http::header::X_CONTENT_TYPE_OPTIONS;

/// The named health checks of a program. Clones are the same.
#[derive(Clone, Default)]
pub struct Health(Arc<RwLock<Vec<Check>>>);

/// A check: the reason why something is not well.
type Probe = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

#[derive(Clone)]
struct Check {
    name: Cow<'static, str>,
    is_of_liveness: bool,
    probe: Probe,
}

impl Health {
    /// Adds a check of `/readyz`, in place of the one of this name. It must not wait for anything.
    pub fn ready(
        &self,
        name: impl Into<Cow<'static, str>>,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.add(Check { name: name.into(), is_of_liveness: false, probe: Arc::new(probe) });
    }

    /// Adds a check of all endpoints: one that a restart of the program may repair.
    pub fn live(
        &self,
        name: impl Into<Cow<'static, str>>,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.add(Check { name: name.into(), is_of_liveness: true, probe: Arc::new(probe) });
    }

    fn add(&self, check: Check) {
        let mut checks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        checks.retain(|known| known.name != check.name);
        checks.push(check);
    }

    /// The checks of an endpoint.
    fn of(&self, endpoint: Endpoint) -> Vec<Check> {
        let ping = Check { name: "ping".into(), is_of_liveness: true, probe: Arc::new(|| Ok(())) };
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let meant = checks.iter().filter(|check| endpoint == Endpoint::Ready || check.is_of_liveness);
        std::iter::once(ping).chain(meant.cloned()).collect()
    }

    /// The answer to a request, as kube-apiserver gives it; none if the path is not one of health.
    #[must_use]
    pub fn answer(&self, path: &str, query: &str) -> Option<Response<Bytes>> {
        let path = path.strip_prefix('/')?;
        let (name, only) = path.split_once('/').map_or((path, None), |(name, only)| (name, Some(only)));
        let checks = self.of(Endpoint::of(name)?);
        let mut response = match only {
            Some(only) => one(&checks, only),
            None => all(&checks, name, &Parameters::parse(query)),
        };
        response.headers_mut().insert(NOSNIFF, HeaderValue::from_static("nosniff"));
        Some(response)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Live,
    Ready,
}

impl Endpoint {
    fn of(name: &str) -> Option<Self> {
        match name {
            "healthz" | "livez" => Some(Self::Live),
            "readyz" => Some(Self::Ready),
            _ => None,
        }
    }
}

/// The answer of one check.
fn one(checks: &[Check], name: &str) -> Response<Bytes> {
    match checks.iter().find(|check| check.name == name).map(|check| (check.probe)()) {
        None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        Some(Ok(())) => text(StatusCode::OK, "ok"),
        Some(Err(reason)) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
        }
    }
}

/// The answer of all checks: `ok`, or a line for each.
fn all(checks: &[Check], endpoint: &str, parameters: &Parameters) -> Response<Bytes> {
    let (mut lines, mut problems) = (String::new(), Vec::new());
    for Check { name, probe, .. } in checks {
        let line = if parameters.excluded.contains(&**name) {
            format!("[+]{name} excluded: ok")
        } else if let Err(reason) = probe() {
            problems.push(format!("{name}: {reason}"));
            format!("[-]{name} failed: reason withheld")
        } else {
            format!("[+]{name} ok")
        };
        let _ = writeln!(lines, "{line}");
    }
    let is_known = |name: &String| checks.iter().any(|check| check.name == *name);
    let unknown: Vec<String> =
        parameters.excluded.iter().filter(|name| !is_known(name)).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        let _ = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
    }
    if !problems.is_empty() {
        tracing::info!(endpoint, problems = problems.join("; "), "health check failed");
        return text(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n"));
    }
    match parameters.is_verbose {
        true => text(StatusCode::OK, format!("{lines}{endpoint} check passed\n")),
        false => text(StatusCode::OK, "ok"),
    }
}

#[derive(Debug, Default, PartialEq)]
struct Parameters {
    is_verbose: bool,
    excluded: BTreeSet<String>,
}

impl Parameters {
    fn parse(query: &str) -> Self {
        let mut parameters = Self::default();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match name {
                "verbose" => parameters.is_verbose = true,
                "exclude" if !value.is_empty() => drop(parameters.excluded.insert(value.into_owned())),
                _ => {}
            }
        }
        parameters
    }
}

/// Serves health checks and metrics by plain HTTP, for kubelets and Prometheus.
pub struct HealthServer {
    health: Health,
    registry: Option<Registry>,
}

impl HealthServer {
    /// A server of these checks.
    #[must_use]
    pub fn new(health: Health) -> Self {
        Self { health, registry: None }
    }

    /// Serves these metrics at `/metrics`.
    #[must_use]
    pub fn metrics(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Serves until a stop is requested.
    pub async fn run(self, listener: TcpListener, shutdown: Shutdown) {
        let stopping = shutdown.clone();
        let is_running = move || match stopping.is_requested() {
            true => Err("the program is stopping".to_owned()),
            false => Ok(()),
        };
        self.health.ready("shutdown", is_running);
        let limits = Limits { request_timeout: Duration::from_secs(10), body_bytes: 0, ..Limits::default() };
        http_server::serve(listener, None, limits, self, shutdown).await;
    }
}

impl Handler for HealthServer {
    fn body_bytes_max(&self, _: &str) -> usize {
        0
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        match (path, &self.registry) {
            ("/metrics", Some(registry)) => metrics(registry),
            _ => self
                .health
                .answer(path, query)
                .unwrap_or_else(|| text(StatusCode::NOT_FOUND, "404 page not found\n")),
        }
    }
}

fn metrics(registry: &Registry) -> Response<Bytes> {
    let mut encoded = String::new();
    if prometheus_client::encoding::text::encode(&mut encoded, registry).is_err() {
        return text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be encoded\n");
    }
    let mut response = text(StatusCode::OK, encoded);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS));
    response
}

#[cfg(test)]
mod tests;
