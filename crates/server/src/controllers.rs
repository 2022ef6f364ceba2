//! The cluster controllers of a server: loopback clients, each acting as a service account of its own.

use std::sync::OnceLock;
use std::time::Duration;

use apiserver::ApiServer;
use apiserver::auth::Identity;
use cluster_controllers::{CONTROLLERS, Settings, event_expiry};
use controller::Metrics;
use controller::leader::{self, Lease, Timing};
use controller::manager;
use process::Shutdown;
use process::pki::Pki;
use process::reload::Current;
use process::signing::SigningKey;
use tasks::TaskFailure;

use crate::config::Controllers;
use crate::loopback::{self, CONTROLLER_MANAGER};

/// The status controller of admission policies, which is a part of the API server.
const POLICY_STATUS: &str = "validatingadmissionpolicy-status-controller";

/// The controllers that can be selected beside [`CONTROLLERS`].
pub(crate) const BUILT_IN: &[&str] = &[POLICY_STATUS];

/// The values that the settings of the controllers are made from. A change restarts the controllers, which then reconcile everything.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The CA that signs certificates and is published to clients.
    pub(crate) pki: Option<Current<Pki>>,
    /// The key that signs tokens of service accounts.
    pub(crate) signing_key: Current<SigningKey>,
}

impl Sources {
    fn settings(&self, unused_tokens: Option<Duration>) -> Settings {
        let pki = self.pki.as_ref().map(Current::get);
        Settings {
            root_ca: pki.as_ref().map(|pki| pki.trusted()).unwrap_or_default(),
            signing_key: Some(self.signing_key.get()),
            signer: pki.map(|pki| pki.signer.clone()),
            unused_tokens,
        }
    }

    async fn changed(&mut self) {
        let pki = async {
            match &mut self.pki {
                Some(pki) => pki.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pki => {}
            () = self.signing_key.changed() => {}
        }
    }
}

/// Runs the selected controllers until a stop is requested. Servers that share a database elect a leader, which alone runs them;
/// `shared_at` is the address of this server if it shares its database.
pub(crate) async fn run(
    api: ApiServer,
    controllers: Controllers,
    sources: Sources,
    metrics: Metrics,
    shared_at: Option<String>,
    shutdown: Shutdown,
) -> Result<(), TaskFailure> {
    tokio::select! {
        () = api.settled() => {}
        () = shutdown.requested() => return Ok(()),
    }
    let Controllers { selection, unused_tokens } = controllers;
    let failure = OnceLock::new();
    let work = |stop: Shutdown| {
        let client = |account: Option<&str>| client_of(&api, account);
        let (mut sources, selection, metrics) = (sources.clone(), selection.clone(), &metrics);
        let policies = check_policies(&api, selection.is_on(POLICY_STATUS), stop.clone());
        let clients = async move {
            while !stop.is_requested() {
                let round = Shutdown::new();
                let settings = sources.settings(unused_tokens);
                let work =
                    manager::run(CONTROLLERS, selection.clone(), &client, settings, metrics, round.clone());
                let mut work = std::pin::pin!(work);
                tokio::select! {
                    // The manager returns before the stop request only if it failed.
                    ended = &mut work => return ended,
                    () = stop.requested() => {}
                    () = sources.changed() => tracing::info!("restarting the controllers with a new CA or signing key"),
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
                // The first failure is kept.
                let _ = failure.set(reason);
            }
        }
    };
    match shared_at {
        None => work(shutdown).await,
        Some(address) => leader::lead(lease(&api, &address), shutdown, |term| work(term.stop)).await?,
    }
    failure.into_inner().map_or(Ok(()), Err)
}

async fn check_policies(api: &ApiServer, is_on: bool, stop: Shutdown) {
    if is_on {
        apiserver::check_policies(api.clone(), stop).await;
    }
}

/// A client that acts as a service account of `kube-system`, or as kube-controller-manager.
fn client_of(api: &ApiServer, account: Option<&str>) -> kube::Client {
    let identity = match account {
        None => Identity::authenticated("system:kube-controller-manager", []),
        Some(account) => Identity::service_account("kube-system", account),
    };
    loopback::client(api, identity, CONTROLLER_MANAGER)
}

/// The Lease of the server that runs the controllers.
fn lease(api: &ApiServer, address: &str) -> Lease {
    Lease {
        client: loopback::client(api, loopback::apiserver(), CONTROLLER_MANAGER),
        namespace: "kube-system".to_owned(),
        name: "orlop-controllers".to_owned(),
        holder: format!("{address}_{}", uuid::Uuid::new_v4()),
        timing: Timing::default(),
    }
}

/// Deletes Events this long after their last write, until a stop is requested. In Kubernetes etcd does it, not a controller, so it runs
/// in every server, as the server.
pub(crate) async fn expire_events(
    api: ApiServer,
    ttl: Duration,
    shutdown: Shutdown,
) -> Result<(), TaskFailure> {
    tokio::select! {
        () = api.settled() => {}
        () = shutdown.requested() => return Ok(()),
    }
    let client = loopback::client(&api, loopback::apiserver(), CONTROLLER_MANAGER);
    event_expiry(client, ttl, shutdown).await
}
