//! A role that runs alone, as a client of any Kubernetes API.

use std::{path::PathBuf, pin::pin};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use controller::Metrics;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use process::{Shutdown, args::LogArgs, logging, shutdown, supervisor::GRACE};
use role::{Readiness, Role, RoleContext};
use tokio::time::timeout;

/// The flags of a role that runs alone.
#[derive(Args, Debug)]
pub(crate) struct AloneArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the service account of the Pod]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Runs a role until a signal arrives or it fails: the supervisor of the process, such as a kubelet, restarts it.
pub(crate) async fn run(role: &Role, args: AloneArgs) -> Result<()> {
    let mut signals = shutdown::signals().context("cannot listen for signals")?;
    logging::install(&args.log.config(), None)?;
    let client = client(args.kubeconfig, args.context).await?;
    let stop = async move {
        let signal = signals.received().await;
        tracing::info!(signal, "stopping");
    };
    run_until(role, client, stop).await
}

/// Runs a role until `stop` resolves or the role fails.
pub(super) async fn run_until(role: &Role, client: Client, stop: impl Future<Output = ()>) -> Result<()> {
    let shutdown = Shutdown::new();
    let context = RoleContext {
        client: client.clone(),
        shutdown: shutdown.clone(),
        readiness: Readiness::default(),
        queue_metrics: Metrics::default(),
        instance: format!("{}_{}", process::listen::host_name(), uuid::Uuid::new_v4()),
    };
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

/// A client by a kubeconfig file; without one by the files of `KUBECONFIG`, by `~/.kube/config`, or by the service account of the Pod.
pub(super) async fn client(kubeconfig: Option<PathBuf>, context: Option<String>) -> Result<Client> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = match kubeconfig {
        Some(path) => {
            let unusable = || format!("cannot use {}, which --kubeconfig names", path.display());
            let kubeconfig = Kubeconfig::read_from(&path).with_context(unusable)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.with_context(unusable)?
        }
        None if options.context.is_some() => {
            Config::from_kubeconfig(&options).await.context("cannot load the kubeconfig")?
        }
        None => Config::infer().await.context("no kubeconfig and no service account: give --kubeconfig")?,
    };
    Ok(Client::try_from(config)?)
}
