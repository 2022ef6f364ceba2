//! `/healthz`, `/livez` and `/readyz`, with named checks.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use futures::FutureExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use model::error::quote;

use crate::api::ApiServer;
use crate::auth::rbac::RbacKind;
use crate::body::Body;
use crate::crds;
use crate::request::query::Query;

/// The longest acceptable lag of the publisher: a longer one hides writes from clients.
const LONGEST_LAG: Duration = Duration::from_secs(5);

/// The component of a check.
#[derive(Clone, Copy)]
enum Probe {
    /// No background task has ended early.
    Tasks,
    /// The audit log can be written.
    AuditLog,
    /// The database answers, and took the last commit.
    Database,
    /// Committed changes reach watches in time.
    Publisher,
    /// All informers are synced.
    InformersSynced,
    /// All informers have listed once, and run.
    InformersRun,
    /// The informers of admission plugins have listed once, and run.
    AdmissionInformersRun,
    /// The CRD informer has listed once, and runs.
    CrdInformerRuns,
    /// The RBAC informers have listed once and run, and the bootstrap objects exist.
    Rbac,
    /// The bootstrap objects exist.
    Bootstrap,
    /// These background tasks run.
    Running(&'static [&'static str]),
    /// No shutdown is requested.
    Stopping,
    /// The check of `Builder::readyz_check` with this index.
    Added(usize),
}

/// The checks of `/readyz` only: a restart does not help a server that waits for them.
const OF_READINESS: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

const CRD_CONTROLLER: &str = "the CRD controller";
const LEASE_CONTROLLER: &str = "the identity Lease controller";

/// All checks in order, under Kubernetes' names.
const CHECKS: [(&str, Probe); 26] = [
    ("ping", Probe::Tasks),
    ("log", Probe::AuditLog),
    ("etcd", Probe::Database),
    ("etcd-readiness", Probe::Publisher),
    ("informer-sync", Probe::InformersSynced),
    ("poststarthook/start-apiserver-admission-initializer", Probe::AdmissionInformersRun),
    ("poststarthook/generic-apiserver-start-informers", Probe::InformersRun),
    ("poststarthook/priority-and-fairness-config-consumer", Probe::Running(&["the FlowSchema controller"])),
    ("poststarthook/start-apiextensions-informers", Probe::Running(&["the CRD informer"])),
    (
        "poststarthook/start-apiextensions-controllers",
        Probe::Running(&[CRD_CONTROLLER, "the selectable field controller"]),
    ),
    ("poststarthook/crd-informer-synced", Probe::CrdInformerRuns),
    ("poststarthook/start-system-namespaces-controller", Probe::Bootstrap),
    (
        "poststarthook/start-cluster-authentication-info-controller",
        Probe::Running(&["the authentication ConfigMap controller"]),
    ),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", Probe::Running(&[LEASE_CONTROLLER])),
    (
        "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
        Probe::Running(&[LEASE_CONTROLLER]),
    ),
    (
        "poststarthook/start-legacy-token-tracking-controller",
        Probe::Running(&["the legacy token tracking controller"]),
    ),
    ("poststarthook/rbac/bootstrap-roles", Probe::Rbac),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", Probe::Bootstrap),
    ("poststarthook/priority-and-fairness-config-producer", Probe::Bootstrap),
    // This controller maintains the Service `kubernetes` and its endpoints.
    ("poststarthook/bootstrap-controller", Probe::Running(&[LEASE_CONTROLLER])),
    ("poststarthook/start-kubernetes-service-cidr-controller", Probe::Bootstrap),
    ("poststarthook/start-kube-aggregator-informers", Probe::Running(&[CRD_CONTROLLER])),
    ("poststarthook/apiservice-registration-controller", Probe::Running(&[CRD_CONTROLLER])),
    ("poststarthook/kube-apiserver-autoregistration", Probe::Running(&[CRD_CONTROLLER])),
    ("autoregister-completion", Probe::Bootstrap),
    ("shutdown", Probe::Stopping),
];

/// The checks of an endpoint. A component that this server does not have is not listed.
fn checks<'a>(api: &'a ApiServer, endpoint: &'a str) -> impl Iterator<Item = (&'a str, Probe)> + 'a {
    let is_of_readiness = endpoint == "readyz";
    let is_meant = move |name: &str| is_of_readiness || !OF_READINESS.contains(&name);
    let own = CHECKS.into_iter().filter(move |(name, probe)| is_meant(name) && probe.is_present(api));
    let added = api.readyz_checks.iter().filter(move |_| is_of_readiness).enumerate();
    own.chain(added.map(|(index, added)| (added.name.as_str(), Probe::Added(index))))
}

/// Splits `/livez/ping` into endpoint and check.
pub fn endpoint(path: &str) -> Option<(&str, Option<&str>)> {
    let path = path.strip_prefix('/')?;
    let (endpoint, check) = match path.split_once('/') {
        Some((endpoint, check)) => (endpoint, Some(check)),
        None => (path, None),
    };
    matches!(endpoint, "healthz" | "livez" | "readyz").then_some((endpoint, check))
}

/// Runs the checks: `ok`, or a line per check.
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
        tracing::info!(endpoint, problems = problems.join("; "), "health endpoint reports a failed check");
        return plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n"));
    }
    let verbose = query.has("verbose");
    plain(StatusCode::OK, if verbose { format!("{lines}{endpoint} check passed\n") } else { "ok".to_owned() })
}

impl Probe {
    /// Whether this server has the component.
    fn is_present(self, api: &ApiServer) -> bool {
        match self {
            Self::AuditLog => api.audit.is_some(),
            Self::AdmissionInformersRun => api.admission.informed_resources(&api.registry()).next().is_some(),
            Self::CrdInformerRuns => api.informers.has(&crds::resource()),
            Self::Running(tasks) => tasks.iter().all(|task| api.tasks.has_started(task)),
            _ => true,
        }
    }

    /// The reason of a failure, without stored data.
    async fn problem(self, api: &ApiServer) -> Option<Cow<'static, str>> {
        let unless = |is_well: bool, problem: &'static str| (!is_well).then_some(Cow::Borrowed(problem));
        match self {
            Self::Tasks => unless(api.tasks.failure().is_none(), "a background task has ended early"),
            Self::AuditLog => {
                let log = api.audit.as_ref().map(|audit| &audit.log);
                unless(log.is_none_or(|log| !log.is_failing()), "the audit log cannot be written")
            }
            Self::Database => database_problem(api).await.map(Cow::Borrowed),
            Self::Publisher => {
                unless(api.store.publisher_lag() < LONGEST_LAG, "watches are behind the database")
            }
            Self::InformersSynced => unless(api.informers.are_synced(), "an informer is not synced"),
            Self::InformersRun => unless(api.informers.are_running(), "an informer does not run"),
            Self::AdmissionInformersRun => {
                let registry = api.registry();
                let mut informers = api.admission.informed_resources(&registry);
                let are_running = informers.all(|resource| api.informers.is_running(resource));
                unless(are_running, "an informer of an admission plugin does not run")
            }
            Self::CrdInformerRuns => {
                unless(api.informers.is_running(&crds::resource()), "the CRD informer does not run")
            }
            Self::Rbac => {
                let are_running = RbacKind::ALL.iter().all(|kind| api.informers.is_running(&kind.resource()));
                unless(are_running, "an informer of roles and bindings does not run")
                    .or_else(|| unless(api.progress.is_complete(), "bootstrap is not complete"))
            }
            Self::Bootstrap => unless(api.progress.is_complete(), "bootstrap is not complete"),
            Self::Running(tasks) => {
                unless(!tasks.iter().any(|task| api.tasks.has_failed(task)), "its task has ended early")
            }
            Self::Stopping => {
                let is_stopping = api.shutdown.is_requested() || api.leaving.is_requested();
                unless(!is_stopping, "the server is stopping")
            }
            Self::Added(index) => {
                api.readyz_checks.get(index).and_then(|added| (added.check)().err()).map(Cow::Owned)
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
