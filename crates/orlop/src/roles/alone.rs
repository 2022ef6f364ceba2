//! A role that runs alone, as a client of any Kubernetes API.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    pin::pin,
};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use controller::{
    Metrics,
    clusters::{in_cluster, kubeconfig_file},
    health::{Health, HealthServer},
};
use kube::Client;
use process::{Shutdown, args::LogArgs, listen::ListenAddress, logging, shutdown, supervisor::GRACE};
use prometheus_client::registry::Registry;
use role::{Readiness, Role, RoleContext};
use tokio::{net::TcpListener, time::timeout};

/// The flags of a role that runs alone.
#[derive(Args, Debug)]
pub(crate) struct AloneArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, the service account of the Pod, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Address for /healthz, /livez, /readyz and /metrics over plain HTTP; port 0 selects a free one
    ///
    /// Clients need no credentials, so the default serves this machine alone. In a Pod use 0.0.0.0:8081: kubelets and
    /// Prometheus connect to the address of the Pod. Several roles on one machine need different ports.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8081", help_heading = "Observation")]
    pub(crate) health_listen: ListenAddress,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Runs a role until a signal arrives or it fails: the supervisor of the process, such as a kubelet, restarts it.
pub(crate) async fn run(role: &Role, args: AloneArgs) -> Result<()> {
    let mut signals = shutdown::signals().context("cannot listen for signals")?;
    logging::install(&args.log.config(), None)?;
    let listener = args.health_listen.bind().await.context("cannot serve --health-listen")?;
    tracing::info!(address = %listener.local_addr()?, "serving health checks and metrics");
    let environment = |name: &str| std::env::var_os(name);
    let client = client(args.kubeconfig.as_deref(), args.context.as_deref(), environment).await?;
    let stop = async move {
        let signal = signals.received().await;
        tracing::info!(signal, "stopping");
    };
    run_until(role, client, listener, stop).await
}

/// Runs a role, and serves its health checks and metrics, until `stop` resolves or the role fails.
pub(super) async fn run_until(
    role: &Role,
    client: Client,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let shutdown = Shutdown::new();
    let mut registry = Registry::default();
    role.register_metrics(&mut registry);
    let context = RoleContext {
        client,
        shutdown: shutdown.clone(),
        readiness: Readiness::default(),
        queue_metrics: Metrics::register(&mut registry),
        instance: format!("{}_{}", process::listen::host_name(), uuid::Uuid::new_v4()),
    };
    let (health, readiness) = (Health::default(), context.readiness.clone());
    health.ready(format!("role/{}", role.name()), move || readiness.check());
    let endpoints = HealthServer::new(health).metrics(registry).run(listener, shutdown.clone());
    let running = async {
        let ended = run_role(role, context, stop).await;
        // A role that failed has requested no stop, and the endpoints end with it.
        shutdown.request();
        ended
    };
    tokio::join!(running, endpoints).0
}

async fn run_role(role: &Role, context: RoleContext, stop: impl Future<Output = ()>) -> Result<()> {
    let (client, shutdown) = (context.client.clone(), context.shutdown.clone());
    tracing::info!(role = role.name(), "starting");
    let mut running = pin!(role::run(role, &client, context));
    tokio::select! {
        ended = &mut running => return ended.map_err(|error| anyhow!("the role {} failed: {error}", role.name())),
        () = stop => {}
    }
    shutdown.request();
    match timeout(GRACE, running).await {
        Ok(ended) => Ok(ended?),
        Err(_) => {
            tracing::warn!(role = role.name(), grace = ?GRACE, "the role did not stop in time");
            Ok(())
        }
    }
}

/// A client by a kubeconfig file; without one by the files of `KUBECONFIG`, by the service account of the Pod, or by `~/.kube/config`.
pub(super) async fn client(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Client> {
    match kubeconfig {
        Some(path) => {
            let made = kubeconfig_file(Some(path), context).await;
            made.with_context(|| format!("cannot use {}, which --kubeconfig names", path.display()))
        }
        None if context.is_none() && is_service_account_meant(environment) => Ok(in_cluster()?),
        None => kubeconfig_file(None, context).await.context("no usable kubeconfig: give --kubeconfig"),
    }
}

/// Whether the process runs in a Pod without a `KUBECONFIG`. An unusable `KUBECONFIG` is an error: the role must not act on another cluster
/// than the one that it names.
pub(super) fn is_service_account_meant(environment: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| environment(name).is_some_and(|value| !value.is_empty());
    is_set("KUBERNETES_SERVICE_HOST") && !is_set("KUBECONFIG")
}
