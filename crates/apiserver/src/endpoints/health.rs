//! `/healthz`, `/livez` and `/readyz`, with named checks.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use futures::FutureExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use model::error::quote;

use crate::api::ApiServer;
use crate::auth::rbac::Kind;
use crate::body::Body;
use crate::definitions;
use crate::request::query::Query;

/// A publisher that is behind for longer than this hides writes from clients.
const LONGEST_LAG: Duration = Duration::from_secs(5);

/// The component that a check looks at.
#[derive(Clone, Copy)]
enum Probe {
    /// No background task has ended early.
    Tasks,
    /// The audit log takes lines.
    AuditLog,
    /// The database answers, and took the last commit.
    Database,
    /// Committed changes reach watches in time.
    Publisher,
    /// All informers follow the log.
    Informers,
    /// The CRD informer follows the log.
    CrdInformer,
    /// The informers of roles and bindings follow the log, and the first objects are there.
    Rbac,
    /// The first objects are there.
    FirstObjects,
    /// These background tasks run.
    Running(&'static [&'static str]),
    /// Nothing has asked the server to stop.
    Stopping,
}

/// All checks, in the order in which they are listed, under Kubernetes' names; and whether only `/readyz` has them: a restart does not
/// bring a server closer to what it waits for.
const CHECKS: &[(&str, bool, Probe)] = &[
    ("ping", false, Probe::Tasks),
    ("log", false, Probe::AuditLog),
    ("etcd", false, Probe::Database),
    ("etcd-readiness", true, Probe::Publisher),
    ("informer-sync", true, Probe::Informers),
    (
        "poststarthook/priority-and-fairness-config-consumer",
        false,
        Probe::Running(&["the FlowSchema controller"]),
    ),
    ("poststarthook/start-apiextensions-informers", false, Probe::Running(&["the CRD informer"])),
    (
        "poststarthook/start-apiextensions-controllers",
        false,
        Probe::Running(&["the CRD controller", "the selectable field controller"]),
    ),
    ("poststarthook/crd-informer-synced", true, Probe::CrdInformer),
    ("poststarthook/start-system-namespaces-controller", true, Probe::FirstObjects),
    (
        "poststarthook/start-cluster-authentication-info-controller",
        false,
        Probe::Running(&["the authentication ConfigMap controller"]),
    ),
    (
        "poststarthook/start-kube-apiserver-identity-lease-controller",
        false,
        Probe::Running(&["the identity Lease controller"]),
    ),
    (
        "poststarthook/start-legacy-token-tracking-controller",
        false,
        Probe::Running(&["the legacy token tracking controller"]),
    ),
    ("poststarthook/rbac/bootstrap-roles", true, Probe::Rbac),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", true, Probe::FirstObjects),
    ("poststarthook/priority-and-fairness-config-producer", true, Probe::FirstObjects),
    ("poststarthook/apiservice-registration-controller", false, Probe::Running(&["the CRD controller"])),
    ("shutdown", true, Probe::Stopping),
];

/// The checks of an endpoint. There is nothing to check in an audit log that is not written.
fn checks<'a>(api: &'a ApiServer, endpoint: &'a str) -> impl Iterator<Item = (&'static str, Probe)> + 'a {
    let of_endpoint =
        CHECKS.iter().filter(move |(_, is_of_readiness, _)| !is_of_readiness || endpoint == "readyz");
    let present = of_endpoint.filter(|(.., probe)| api.audit.is_some() || !matches!(probe, Probe::AuditLog));
    present.map(|(name, _, probe)| (*name, *probe))
}

/// Takes `/livez/ping` apart.
pub fn endpoint(path: &str) -> Option<(&str, Option<&str>)> {
    let path = path.strip_prefix('/')?;
    let (endpoint, check) = match path.split_once('/') {
        Some((endpoint, check)) => (endpoint, Some(check)),
        None => (path, None),
    };
    matches!(endpoint, "healthz" | "livez" | "readyz").then_some((endpoint, check))
}

/// Runs the checks and reports: `ok`, or a line for each check.
pub async fn answer(api: &ApiServer, endpoint: &str, only: Option<&str>, query: &Query) -> Response<Body> {
    if let Some(only) = only {
        let Some((_, probe)) = checks(api, endpoint).find(|(name, _)| *name == only) else {
            return plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned());
        };
        return match probe.problem(api).await {
            None => plain(StatusCode::OK, "ok".to_owned()),
            Some(problem) => {
                plain(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {problem}\n"))
            }
        };
    }
    let mut unknown: BTreeSet<&str> = query.all("exclude").filter(|name| !name.is_empty()).collect();
    let (mut lines, mut problems) = (String::new(), Vec::new());
    for (name, probe) in checks(api, endpoint) {
        unknown.remove(name);
        if query.all("exclude").any(|excluded| excluded == name) {
            let _ = writeln!(lines, "[+]{name} excluded: ok");
        } else if let Some(problem) = probe.problem(api).await {
            let _ = writeln!(lines, "[-]{name} failed: reason withheld");
            problems.push(format!("{name}: {problem}"));
        } else {
            let _ = writeln!(lines, "[+]{name} ok");
        }
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| quote(name)).collect();
        let names = names.join(", ");
        let _ = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
    }
    if !problems.is_empty() {
        tracing::info!(endpoint, problems = problems.join("; "), "health check failed");
        return plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n"));
    }
    let verbose = query.has("verbose");
    plain(StatusCode::OK, if verbose { format!("{lines}{endpoint} check passed\n") } else { "ok".to_owned() })
}

impl Probe {
    /// Why the check fails, in words that tell nothing of what is stored.
    async fn problem(self, api: &ApiServer) -> Option<&'static str> {
        let unless = |is_well: bool, problem: &'static str| (!is_well).then_some(problem);
        match self {
            Self::Tasks => unless(api.tasks.failure().is_none(), "a background task has ended early"),
            Self::AuditLog => {
                let log = api.audit.as_ref().map(|audit| &audit.log);
                unless(log.is_none_or(|log| !log.is_failing()), "the audit log cannot be written")
            }
            Self::Database => database_problem(api).await,
            Self::Publisher => {
                unless(api.store.publisher_lag() < LONGEST_LAG, "watches are behind the database")
            }
            Self::Informers => unless(api.informers.are_synced(), "an informer is not synced"),
            Self::CrdInformer => {
                unless(api.informers.is_synced(&definitions::resource()), "the CRD informer is not synced")
            }
            Self::Rbac => {
                let is_running = !api.tasks.has_failed("the RBAC informer");
                let are_synced = Kind::ALL.iter().all(|kind| api.informers.is_synced(&kind.resource()));
                unless(is_running && are_synced, "roles and bindings are not followed")
                    .or_else(|| unless(api.progress.is_complete(), "the first objects are not there yet"))
            }
            Self::FirstObjects => unless(api.progress.is_complete(), "the first objects are not there yet"),
            Self::Running(tasks) => {
                unless(!tasks.iter().any(|task| api.tasks.has_failed(task)), "its task has ended early")
            }
            Self::Stopping => {
                let is_stopping = api.shutdown.is_requested() || api.leaving.is_requested();
                unless(!is_stopping, "the server is stopping")
            }
        }
    }
}

async fn database_problem(api: &ApiServer) -> Option<&'static str> {
    if api.store.failed().now_or_never().is_some() {
        return Some("a task of the store has ended early");
    }
    if api.store.commits_fail() {
        return Some("the last commit failed");
    }
    api.store.clock().await.is_err().then_some("the database does not answer")
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
