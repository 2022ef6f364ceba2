//! The apiserver identity Lease, and the endpoints of the Service `kubernetes`.
//!
//! A server that does not share its database renews its Lease rarely. Servers that share one renew often, watch each other's
//! Leases, and write the endpoints of all servers with a fresh Lease. The controller also restores the Service `kubernetes`
//! and the namespace `kube-node-lease` if they are deleted.

mod decide;
mod objects;

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use kinds::Ranges;
use model::error::Error;
use model::selector::{Requirement, Target, Test};
use model::{ObjectKey, Resource, Selector};
use process::Shutdown;
use serde_json::Value;
use store::{Store, Stored, WatchScope};
use tokio::sync::SetOnce;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::api::{ApiServer, ServerState};
use crate::bootstrap;
use crate::informer::Trigger;
use crate::pages::Pages;
use crate::verbs::store_error;
use decide::{Actions, DecisionTime, LeaseHistory, ObservedState, decide};
use objects::{IdentityLease, ServerIdentity};

/// The delay that collects changes and precedes a retry, so that servers which disagree do not write in a tight loop.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest wait for the release of the Lease at shutdown.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// Group, version and resource of the written types.
const LEASES: [&str; 3] = ["coordination.k8s.io", "v1", "leases"];
const ENDPOINTS: [&str; 3] = ["", "v1", "endpoints"];
const SLICES: [&str; 3] = ["discovery.k8s.io", "v1", "endpointslices"];
const SERVICES: [&str; 3] = ["", "v1", "services"];
const NAMESPACES: [&str; 3] = ["", "v1", "namespaces"];

/// The controller of the identity Lease.
pub(crate) struct IdentityLeaseController {
    identity: ServerIdentity,
    history: LeaseHistory,
}

/// Completion of the Lease's release at shutdown.
#[derive(Default)]
pub(crate) struct LeaseRelease(SetOnce<()>);

impl LeaseRelease {
    /// Records that the Lease is released, or that there is none.
    pub fn complete(&self) {
        // Set once.
        let _ = self.0.set(());
    }

    /// Waits for the release, up to a timeout.
    pub async fn wait(&self) {
        let _ = timeout(RELEASE_TIMEOUT, self.0.wait()).await;
    }
}

impl IdentityLeaseController {
    /// `host` is the host name, `address` the advertised address, `is_shared` whether other servers may use the database.
    pub fn new(host: &str, address: SocketAddr, is_shared: bool, services: Ranges) -> Self {
        Self {
            identity: ServerIdentity::new(host, address, is_shared, services),
            history: LeaseHistory::default(),
        }
    }

    /// Writes the Lease during bootstrap. A failure is logged: the controller retries.
    pub async fn begin(&mut self, api: &ApiServer) {
        if let Err(error) = self.reconcile(api, false).await {
            tracing::warn!(%error, "cannot write the apiserver identity Lease during bootstrap; retrying later");
        }
    }

    /// Renews the Lease until shutdown, then releases it.
    pub async fn run(mut self, server: Weak<ServerState>) {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let mut stop = std::pin::pin!(stop(api.shutdown.clone(), api.leaving.clone()));
        let (store, informers) = api.store_and_informers();
        drop(api);
        let mut trigger = Trigger::new(&store, &informers, scopes()).await;
        loop {
            let Some(api) = server.upgrade().map(ApiServer::of) else { return };
            let reconciled = self.reconcile(&api, false).await;
            drop(api);
            let turn = async {
                match reconciled {
                    Ok(next) => changed(&mut trigger, next).await,
                    Err(error) => {
                        tracing::warn!(%error, "cannot write the apiserver identity Lease; retrying");
                        sleep(PAUSE).await;
                    }
                }
            };
            tokio::select! {
                () = &mut stop => break,
                () = turn => {}
            }
        }
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        if let Err(error) = self.reconcile(&api, true).await {
            tracing::warn!(%error, "cannot release the apiserver identity Lease; it expires by itself");
        }
        api.lease_release.complete();
    }

    /// Writes the differences between observed and desired state. Returns the time of the next reconciliation.
    async fn reconcile(&mut self, api: &ApiServer, is_leaving: bool) -> Result<Instant, Error> {
        let observed = observe(&api.store).await.map_err(store_error)?;
        let time = DecisionTime { now: Instant::now(), clock: Timestamp::now(), is_leaving };
        self.history.note(&observed.leases, &time);
        let Actions { writes, ended, is_renewal, next } =
            decide(&self.identity, &observed, &self.history, &time);
        bootstrap::write_all(api, writes).await?;
        for (path, preconditions) in ended {
            // A conflict is resolved by the next reconciliation.
            bootstrap::loopback::request(api, Method::DELETE, &path, preconditions.to_string()).await?;
        }
        if is_renewal {
            self.history.renewed(time.now);
        }
        Ok(next)
    }
}

async fn stop(shutdown: Shutdown, leaving: Shutdown) {
    tokio::select! {
        () = shutdown.requested() => {}
        () = leaving.requested() => {}
    }
}

/// Waits for a change and collects those right after it, or until `next`.
async fn changed(trigger: &mut Trigger, next: Instant) {
    let change = async {
        trigger.fired().await;
        sleep(PAUSE).await;
    };
    tokio::select! {
        () = change => {}
        () = sleep_until(next) => {}
    }
}

/// Whether the server serves the types that the controller writes.
pub(crate) fn is_served(api: &ApiServer) -> bool {
    let registry = api.registry();
    [LEASES, ENDPOINTS, SLICES, SERVICES, NAMESPACES]
        .iter()
        .all(|[group, version, plural]| registry.find(group, version, plural).is_some())
}

fn labelled([key, value]: [&str; 2]) -> Selector {
    let test = Test::In(vec![value.to_owned()]);
    Selector { requirements: vec![Requirement { target: Target::Label, key: key.to_owned(), test }] }
}

fn resource([group, _, plural]: [&str; 3]) -> Resource {
    Resource::new(group, plural)
}

/// The Endpoints and the Service `kubernetes`, and the namespace for the Leases of nodes.
fn single_objects() -> [ObjectKey; 3] {
    [
        ObjectKey::new(&resource(ENDPOINTS), objects::NAMESPACE, objects::SERVICE),
        ObjectKey::new(&resource(SERVICES), objects::NAMESPACE, objects::SERVICE),
        ObjectKey::new(&resource(NAMESPACES), "", objects::NODE_LEASES),
    ]
}

/// The Leases of servers, and the EndpointSlices of the Service `kubernetes`.
fn selections() -> [(Resource, &'static str, Selector); 2] {
    [
        (resource(LEASES), objects::SYSTEM, labelled(objects::IDENTITY)),
        (resource(SLICES), objects::NAMESPACE, labelled(objects::OF_SERVICE)),
    ]
}

fn scopes() -> impl Iterator<Item = WatchScope> {
    let selected = selections().into_iter().map(|(resource, namespace, selector)| WatchScope {
        namespace: Some(namespace.to_owned()),
        selector,
        ..WatchScope::all(resource)
    });
    selected.chain(single_objects().into_iter().map(WatchScope::one))
}

/// Reads the observed state.
async fn observe(store: &Store) -> Result<ObservedState, store::Error> {
    let list = async |(resource, namespace, selector): (Resource, &str, Selector)| {
        // Servers beyond the first page are ignored.
        let page = Pages::of(store, resource).within(namespace).selected(selector).next().await?;
        Ok::<_, store::Error>(page.map(|page| page.items).unwrap_or_default())
    };
    let [leases, slices] = selections();
    let (leases, slices) = (list(leases).await?, list(slices).await?);
    let [endpoints, service, node_leases] = single_objects();
    Ok(ObservedState {
        leases: leases.iter().filter_map(IdentityLease::read).collect(),
        slices: slices.iter().filter_map(parsed).collect(),
        endpoints: store.get(&endpoints, None).await?.as_ref().and_then(parsed),
        has_service: store.get(&service, None).await?.is_some(),
        has_node_leases: store.get(&node_leases, None).await?.is_some(),
    })
}

fn parsed(stored: &Stored) -> Option<Value> {
    serde_json::from_slice(&stored.value).ok()
}
