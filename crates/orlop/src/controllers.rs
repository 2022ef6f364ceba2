//! The housekeeping controllers in the process of the server: what they do is requests like those of every client.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use apiserver::{ApiServer, ApiService, auth::Identity};
use controller::housekeeping::{CONTROLLERS, event_expiry};
use controller::leader::{self, Lease};
use controller::manager::{self, Selection, Settings};
use http::{HeaderValue, Request, header};
use kube::client::Body;
use process::Shutdown;
use tower_service::Service;

/// Whom managed fields and logs name.
const USER_AGENT: HeaderValue = HeaderValue::from_static("kube-controller-manager");

/// The controller of the status of policies, which the server has in itself.
const POLICIES: &str = "validatingadmissionpolicy-status-controller";

/// The controllers that are no clients.
pub(crate) const OWN: &[&str] = &[POLICIES];

/// Runs the selected controllers until a stop is requested; with a lease, only while this process holds it.
pub(crate) async fn run(
    api: ApiServer,
    selection: Selection,
    settings: Settings,
    lease: Option<Lease>,
    shutdown: Shutdown,
) -> Result<(), Infallible> {
    let work = |stop| run_here(&api, selection.clone(), settings.clone(), stop);
    match lease {
        None => work(shutdown).await,
        Some(lease) => leader::lead(lease, shutdown, work).await,
    }
    Ok(())
}

async fn run_here(api: &ApiServer, selection: Selection, settings: Settings, stop: Shutdown) {
    let checks_policies = selection.is_on(POLICIES);
    let clients =
        manager::run(CONTROLLERS, selection, |account| client(api, account), settings, stop.clone());
    let policies = async {
        if checks_policies {
            apiserver::check_policies(api.clone(), stop).await;
        }
    };
    tokio::join!(clients, policies);
}

/// The right to run the controllers, of which only one server has it that share a database. `address` is where this one is.
pub(crate) fn lease(api: &ApiServer, address: &str) -> Lease {
    let itself = Identity::authenticated("system:apiserver", ["system:masters".to_owned()]);
    Lease {
        client: in_process(api, itself),
        namespace: "kube-system",
        name: "orlop-controllers",
        holder: format!("{address}_{}", uuid::Uuid::new_v4()),
    }
}

/// Deletes events so long after they were last written, until a stop is requested. This is no controller of Kubernetes, where the
/// database does it: it runs wherever a server does, as the server.
pub(crate) async fn expire_events(
    api: ApiServer,
    ttl: Duration,
    shutdown: Shutdown,
) -> Result<(), Infallible> {
    let itself = Identity::authenticated("system:apiserver", ["system:masters".to_owned()]);
    event_expiry(&in_process(&api, itself), ttl).run(shutdown).await;
    Ok(())
}

/// A client that acts as a service account of the system, or as the process that runs the controllers.
fn client(api: &ApiServer, account: Option<&str>) -> kube::Client {
    let Some(account) = account else {
        return in_process(api, Identity::authenticated("system:kube-controller-manager", []));
    };
    let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"].map(str::to_owned);
    in_process(api, Identity::authenticated(format!("system:serviceaccount:kube-system:{account}"), groups))
}

fn in_process(api: &ApiServer, identity: Identity) -> kube::Client {
    kube::Client::new(InProcess(ApiService::new(api.clone(), identity)), "default")
}

/// The server, as the client library wants it.
struct InProcess(ApiService);

impl Service<Request<Body>> for InProcess {
    type Response = <ApiService as Service<Request<Body>>>::Response;
    type Error = Infallible;
    type Future = <ApiService as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
        self.0.call(request)
    }
}

#[cfg(test)]
mod tests;
