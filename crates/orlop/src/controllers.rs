//! The cluster controllers in the process of the server: what they do is requests like those of every client.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use apiserver::ApiServer;
use apiserver::auth::{Connection, Identity};
use cluster_controllers::{CONTROLLERS, Settings, event_expiry};
use controller::Metrics;
use controller::leader::{self, Lease, Timing};
use controller::manager::{self, Selection};
use http::{HeaderValue, Request, Response, header};
use kube::client::Body;
use process::Shutdown;
use process::pki::Pki;
use process::reload::Current;
use process::signing::SigningKey;
use tasks::TaskFailure;
use tower_service::Service;

/// Whom managed fields and logs name.
const USER_AGENT: HeaderValue = HeaderValue::from_static("kube-controller-manager");

/// The controller of the status of policies, which the server has in itself.
const POLICIES: &str = "validatingadmissionpolicy-status-controller";

/// The controllers that are no clients.
pub(crate) const OWN: &[&str] = &[POLICIES];

/// Where the settings of controllers come from. A change starts the controllers again: they look at everything anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The CA that signs, and by which clients know the server.
    pub(crate) pki: Option<Current<Pki>>,
    /// The key that signs tokens of service accounts.
    pub(crate) signing_key: Option<Current<SigningKey>>,
    /// How long a token that an account got by itself may be unused.
    pub(crate) unused_tokens: Option<Duration>,
}

impl Sources {
    fn settings(&self) -> Settings {
        let pki = self.pki.as_ref().map(Current::get);
        Settings {
            root_ca: pki.as_ref().map(|pki| pki.trusted()).unwrap_or_default(),
            signing_key: self.signing_key.as_ref().map(Current::get),
            signer: pki.map(|pki| pki.signer.clone()),
            unused_tokens: self.unused_tokens,
        }
    }

    async fn changed(&mut self) {
        async fn of<T>(source: &mut Option<Current<T>>) {
            match source {
                Some(source) => source.changed().await,
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = of(&mut self.pki) => {}
            () = of(&mut self.signing_key) => {}
        }
    }
}

/// Runs the selected controllers until a stop is requested. Of the servers that share a database only one does at a time;
/// `shared_at` is where this one is, if it may have such neighbours.
pub(crate) async fn run(
    api: ApiServer,
    selection: Selection,
    sources: Sources,
    metrics: Metrics,
    shared_at: Option<String>,
    shutdown: Shutdown,
) -> Result<(), TaskFailure> {
    tokio::select! {
        () = api.settled() => {}
        () = shutdown.requested() => return Ok(()),
    }
    let line = Line::to(api.clone());
    let failure = OnceLock::new();
    let work = |stop: Shutdown| {
        let client = |account: Option<&str>| line.client_of(account);
        let (mut sources, selection, metrics) = (sources.clone(), selection.clone(), &metrics);
        let policies = check_policies(&api, selection.is_on(POLICIES), stop.clone());
        let clients = async move {
            while !stop.is_requested() {
                let round = Shutdown::new();
                let settings = sources.settings();
                let work =
                    manager::run(CONTROLLERS, selection.clone(), &client, settings, metrics, round.clone());
                let mut work = std::pin::pin!(work);
                tokio::select! {
                    // Before it is asked to stop it can only fail.
                    ended = &mut work => return ended,
                    () = stop.requested() => {}
                    () = sources.changed() => tracing::info!("the controllers start again with a new CA or key"),
                }
                round.request();
                work.await?;
            }
            Ok(())
        };
        async {
            let policies = async {
                policies.await;
                Ok(())
            };
            if let Err(reason) = tokio::try_join!(clients, policies) {
                // Only the first counts.
                let _ = failure.set(reason);
            }
        }
    };
    match shared_at {
        None => work(shutdown).await,
        Some(address) => leader::lead(lease(&line, &address), shutdown, |term| work(term.stop)).await?,
    }
    failure.into_inner().map_or(Ok(()), Err)
}

async fn check_policies(api: &ApiServer, is_on: bool, stop: Shutdown) {
    if is_on {
        apiserver::check_policies(api.clone(), stop).await;
    }
}

/// The right to run the controllers.
fn lease(line: &Line, address: &str) -> Lease {
    Lease {
        client: line.client(Identity::authenticated("system:apiserver", ["system:masters".to_owned()])),
        namespace: "kube-system".to_owned(),
        name: "orlop-controllers".to_owned(),
        holder: format!("{address}_{}", uuid::Uuid::new_v4()),
        timing: Timing::default(),
    }
}

/// Deletes events so long after they were last written, until a stop is requested. This is no controller of Kubernetes, where the
/// database does it: it runs wherever a server does, as the server.
pub(crate) async fn expire_events(
    api: ApiServer,
    ttl: Duration,
    shutdown: Shutdown,
) -> Result<(), TaskFailure> {
    tokio::select! {
        () = api.settled() => {}
        () = shutdown.requested() => return Ok(()),
    }
    let line = Line::to(api);
    let client = line.client(Identity::authenticated("system:apiserver", ["system:masters".to_owned()]));
    event_expiry(client, ttl, shutdown).await
}

/// The way to the server. It is cut at the end: tasks of the client library may outlive their clients for a moment, and the
/// server shall not.
struct Line(Arc<Mutex<Option<ApiServer>>>);

impl Line {
    fn to(api: ApiServer) -> Self {
        Self(Arc::new(Mutex::new(Some(api))))
    }

    /// A client that acts as a service account of the system, or as the process that runs the controllers.
    fn client_of(&self, account: Option<&str>) -> kube::Client {
        let Some(account) = account else {
            return self.client(Identity::authenticated("system:kube-controller-manager", []));
        };
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"].map(str::to_owned);
        let name = format!("system:serviceaccount:kube-system:{account}");
        self.client(Identity::authenticated(name, groups))
    }

    fn client(&self, identity: Identity) -> kube::Client {
        let service = InProcess { api: Arc::clone(&self.0), connection: Connection::InProcess(identity) };
        kube::Client::new(service, "default")
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The server, as the client library wants it.
struct InProcess {
    api: Arc<Mutex<Option<ApiServer>>>,
    connection: Connection,
}

/// The server has ended.
#[derive(Debug, thiserror::Error)]
#[error("the server has ended")]
struct Ended;

impl Service<Request<Body>> for InProcess {
    type Response = Response<apiserver::Body>;
    type Error = Ended;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Ended>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
        let api = self.api.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let connection = self.connection.clone();
        Box::pin(async move { Ok(api.ok_or(Ended)?.answer(&connection, request).await) })
    }
}

#[cfg(test)]
mod tests;
