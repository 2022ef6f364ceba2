//! A running server.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use apiserver::{ApiServer, ApiService, auth::Identity};
use process::{Shutdown, Supervisor, supervisor::Failure};
use tasks::Tasks;
use tokio::{sync::SetOnce, time::timeout};

use crate::{
    Error,
    config::Config,
    kubeconfig,
    loopback::{self, LOOPBACK},
    start::{self, Started},
};

/// The time that the store may take to close. Acknowledged writes are durable before.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that a stop takes beside the running requests.
const STOP_TIME: Duration = Duration::from_secs(1);

/// A running server. Dropping it aborts its tasks; [`Server::shutdown`] stops it in order.
pub struct Server {
    started: Started,
    /// Fails `/readyz`, before the stop.
    draining: Shutdown,
    shutdown: Shutdown,
    shutdown_delay: Duration,
    /// Owns the task that runs the supervisor.
    supervising: Tasks,
    ended: Arc<SetOnce<Result<(), Arc<Failure>>>>,
}

impl Server {
    /// Starts a server, and returns once it answers. Objects that not every answer depends on are created afterwards; [`Server::ready`]
    /// waits for them.
    ///
    /// # Errors
    /// A configuration that does not work here: an address in use, a folder that is not writable, a database that cannot be opened.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let (shutdown, draining) = (Shutdown::new(), Shutdown::new());
        let grace = config.limits.request_timeout + STOP_TIME;
        let shutdown_delay = config.shutdown_delay;
        let mut supervisor = Supervisor::new(shutdown.clone()).with_grace(grace);
        let started = start::start(config, draining.clone(), &mut supervisor).await?;
        let (supervising, ended) = (Tasks::default(), Arc::new(SetOnce::new()));
        let end = Arc::clone(&ended);
        supervising.start_finite("the supervisor", async move {
            let result = supervisor.run().await;
            // It is set once, here.
            let _ = end.set(result.map_err(Arc::new));
        });
        Ok(Self { started, draining, shutdown, shutdown_delay, supervising, ended })
    }

    /// Waits until all bootstrap objects exist. Requests that depend on them wait on their own.
    pub async fn ready(&self) {
        self.started.api.ready().await;
    }

    /// The bound address; `None` without a socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.started.address.as_ref().map(|address| address.bound)
    }

    /// `HOST:PORT` for clients on this machine; `None` without a socket.
    #[must_use]
    pub fn host_and_port(&self) -> Option<&str> {
        self.started.address.as_ref().map(|address| address.for_clients.as_str())
    }

    /// The administrator's kubeconfig; `None` without a socket or without a CA.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<String> {
        let pki = self.started.pki.as_ref()?.get();
        Some(kubeconfig::render(self.host_and_port()?, &pki))
    }

    /// The file with the administrator's kubeconfig; `None` for a server without a data folder.
    #[must_use]
    pub fn kubeconfig_path(&self) -> Option<&Path> {
        self.started.kubeconfig.as_deref()
    }

    /// An in-process client with all rights.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client_as(loopback::administrator())
    }

    /// An in-process client that acts as this user: authorization and admission apply as for a client over the network.
    #[must_use]
    pub fn client_as(&self, identity: Identity) -> kube::Client {
        loopback::client(&self.started.api, identity, LOOPBACK)
    }

    /// The in-process transport of this user, for requests without a client library.
    #[must_use]
    pub fn service(&self, identity: Identity) -> ApiService {
        ApiService::weak(&self.started.api, identity)
    }

    /// The API server.
    #[must_use]
    pub fn api(&self) -> &ApiServer {
        &self.started.api
    }

    /// Resolves with the reason once the server has stopped because one of its tasks failed; pends forever otherwise.
    pub fn failed(&self) -> impl Future<Output = Arc<Failure>> + Send + use<> {
        let ended = Arc::clone(&self.ended);
        async move {
            match ended.wait().await {
                Err(failure) => Arc::clone(failure),
                Ok(()) => std::future::pending().await,
            }
        }
    }

    /// Stops the server: fails `/readyz`, waits for the configured delay, finishes running requests, stops all tasks, closes the store.
    ///
    /// # Errors
    /// The first task that failed, before or during the stop.
    pub async fn shutdown(self) -> Result<(), Arc<Failure>> {
        self.draining.request();
        // A server that has failed already has nothing to drain.
        let _ = timeout(self.shutdown_delay, self.ended.wait()).await;
        self.shutdown.request();
        let result = self.ended.wait().await.clone();
        self.supervising.join().await;
        let Started { store, api, audit_log, .. } = self.started;
        drop(api);
        audit_log.iter().for_each(|log| log.flush());
        if timeout(CLOSE_TIMEOUT, store.close()).await.is_err() {
            tracing::warn!("the store did not close in time; no committed write is lost");
        }
        result
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.started.address).finish_non_exhaustive()
    }
}
