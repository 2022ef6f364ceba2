//! That this server is there: its Lease, and where all servers of the database are, which the service `kubernetes` says.
//!
//! A server that has the database for itself renews its Lease rarely, for nobody else looks at it. Servers that share one renew theirs
//! often, watch those of the others, and each of them writes down where those are whose Lease is fresh. What every cluster has and
//! anybody may delete, the service and the namespace for the Leases of nodes, is brought back by the way.

mod decide;
mod objects;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Weak;
use std::time::Duration;

use futures::future::select_all;
use http::Method;
use jiff::Timestamp;
use model::error::Error;
use model::kinds::Ranges;
use model::selector::{Requirement, Target, Test};
use model::{ObjectKey, Resource, Selector};
use process::Shutdown;
use serde_json::Value;
use store::{ListQuery, Store, Stored, Watch, WatchScope};
use tokio::sync::SetOnce;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::api::{ApiServer, Parts};
use crate::bootstrap;
use crate::verbs::store_error;
use decide::{Memory, Moment, Plan, View, decide};
use objects::{Lease, Me};

/// How long changes are gathered, and how long to wait before something is tried again: servers that do not agree shall not fight.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a server that stops tries to say so.
const FAREWELL: Duration = Duration::from_secs(1);
/// More servers than this are not told of.
const MOST: usize = 500;

/// What the types are called that this is about.
const LEASES: [&str; 3] = ["coordination.k8s.io", "v1", "leases"];
const ENDPOINTS: [&str; 3] = ["", "v1", "endpoints"];
const SLICES: [&str; 3] = ["discovery.k8s.io", "v1", "endpointslices"];
const SERVICES: [&str; 3] = ["", "v1", "services"];
const NAMESPACES: [&str; 3] = ["", "v1", "namespaces"];

/// A server's knowledge of itself and of its neighbours.
pub(crate) struct Presence {
    me: Me,
    memory: Memory,
}

/// Whether a server has said that it is gone, or has nothing to say.
#[derive(Default)]
pub(crate) struct Departure(SetOnce<()>);

impl Departure {
    /// The server has said so, or has nothing to say.
    pub fn complete(&self) {
        // Nobody else says so.
        let _ = self.0.set(());
    }

    /// Waits for it, but not for long.
    pub async fn wait(&self) {
        let _ = timeout(FAREWELL, self.0.wait()).await;
    }
}

impl Presence {
    /// `host` is the machine's name, `address` where others find this server, and `is_shared` whether there may be others on its
    /// database.
    pub fn new(host: &str, address: SocketAddr, is_shared: bool, services: Ranges) -> Self {
        Self { me: Me::new(host, address, is_shared, services), memory: Memory::default() }
    }

    /// Says for the first time that the server is there. One that cannot is complete without.
    pub async fn begin(&mut self, api: &ApiServer) {
        if let Err(error) = self.settle(api, false).await {
            tracing::warn!(%error, "that this server is there cannot be written yet");
        }
    }

    /// Keeps it true until a stop is requested, and then says that the server is gone.
    pub async fn keep(mut self, server: Weak<Parts>) {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let mut stop = std::pin::pin!(stop(api.shutdown.clone(), api.leaving.clone()));
        drop(api);
        loop {
            let Some(api) = server.upgrade().map(ApiServer::of) else { return };
            let settled = self.settle(&api, false).await;
            drop(api);
            let turn = async {
                match settled {
                    Ok((watches, next)) => changed(watches, next).await,
                    Err(error) => {
                        tracing::warn!(%error, "that this server is there cannot be written; trying again");
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
        if let Err(error) = self.settle(&api, true).await {
            tracing::warn!(%error, "that this server is gone cannot be written; its Lease runs out");
        }
        api.departure.complete();
    }

    /// Writes what is not as it has to be. Gives what tells of changes from then on, and when to look again in any case.
    async fn settle(&mut self, api: &ApiServer, is_leaving: bool) -> Result<(Vec<Watch>, Instant), Error> {
        let (view, watches) = look(&api.store).await.map_err(store_error)?;
        let moment = Moment { now: Instant::now(), clock: Timestamp::now(), is_leaving };
        self.memory.note(&view.leases, &moment);
        let Plan { writes, ended, is_renewal, next } = decide(&self.me, &view, &self.memory, &moment);
        bootstrap::write_at_once(api, writes).await?;
        for (path, preconditions) in ended {
            // Who was faster, or is there again after all, is seen the next time.
            bootstrap::ask(api, Method::DELETE, &path, preconditions.to_string()).await?;
        }
        if is_renewal {
            self.memory.renewed(moment.now);
        }
        Ok((watches, next))
    }
}

async fn stop(shutdown: Shutdown, leaving: Shutdown) {
    tokio::select! {
        () = shutdown.requested() => {}
        () = leaving.requested() => {}
    }
}

/// Waits for a change, and for those right behind it; or until it is time.
async fn changed(mut watches: Vec<Watch>, next: Instant) {
    let changes = watches.iter_mut().map(|watch| -> Pin<Box<dyn Future<Output = ()> + Send>> {
        // Whatever it is, and if the watch is over: what is there then decides.
        Box::pin(async { drop(watch.next().await) })
    });
    let change = async {
        select_all(changes).await;
        sleep(PAUSE).await;
    };
    tokio::select! {
        () = change => {}
        () = sleep_until(next) => {}
    }
}

/// Whether a server has the types that this is about.
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

/// What is there, and what tells of changes of it.
async fn look(store: &Store) -> Result<(View, Vec<Watch>), store::Error> {
    let from = store.clock().await?.current;
    let list = async |[group, _, plural]: [&str; 3], namespace: &str, selector: Selector| {
        let query = ListQuery {
            resource: Resource::new(group, plural),
            namespace: Some(namespace.to_owned()),
            selector,
            at: None,
            after: None,
            limit: MOST,
        };
        store.list(&query).await.map(|page| page.items)
    };
    let get = async |[group, _, plural]: [&str; 3], namespace: &str, name: &str| {
        store.get(&ObjectKey::new(&Resource::new(group, plural), namespace, name), None).await
    };
    let of_servers = labelled(objects::IDENTITY);
    let of_service = labelled(objects::OF_SERVICE);
    let leases = list(LEASES, objects::SYSTEM, of_servers.clone()).await?;
    let slices = list(SLICES, objects::NAMESPACE, of_service.clone()).await?;
    let view = View {
        leases: leases.iter().filter_map(Lease::read).collect(),
        slices: slices.iter().filter_map(parsed).collect(),
        endpoints: get(ENDPOINTS, objects::NAMESPACE, objects::SERVICE).await?.as_ref().and_then(parsed),
        has_service: get(SERVICES, objects::NAMESPACE, objects::SERVICE).await?.is_some(),
        has_node_leases: get(NAMESPACES, "", objects::NODE_LEASES).await?.is_some(),
    };
    let mut watches = Vec::new();
    let all = Selector::default;
    for ([group, _, plural], namespace, name, selector) in [
        (LEASES, Some(objects::SYSTEM), None, of_servers),
        (SLICES, Some(objects::NAMESPACE), None, of_service),
        (ENDPOINTS, Some(objects::NAMESPACE), Some(objects::SERVICE), all()),
        (SERVICES, Some(objects::NAMESPACE), Some(objects::SERVICE), all()),
        (NAMESPACES, None, Some(objects::NODE_LEASES), all()),
    ] {
        let scope = WatchScope {
            resource: Resource::new(group, plural),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            selector,
        };
        watches.push(store.watch(scope, from).await?);
    }
    Ok((view, watches))
}

fn parsed(stored: &Stored) -> Option<Value> {
    serde_json::from_slice(&stored.value).ok()
}
