//! Runs the drop-in server until a signal or a failure.

use anyhow::{Context, Result, anyhow};
use process::shutdown;
use server::{Error, Server};

use super::config::Config;

/// Serves until a signal arrives or a task fails.
pub(super) async fn run(config: Config) -> Result<()> {
    let mut signals = shutdown::signals().context("cannot listen for signals")?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let mut config = config.server;
    config.raise_descriptor_limit();
    let server = tokio::select! {
        started = Server::start(config) => started.map_err(explain)?,
        _ = signals.received() => return Ok(()),
    };
    if let Some(address) = server.address() {
        tracing::info!(%address, "serving securely");
    }
    tokio::select! {
        signal = signals.received() => tracing::info!(signal, "stopping"),
        _ = server.failed() => {}
    }
    Ok(server.shutdown().await?)
}

/// Adds the flag that helps, in kube-apiserver's words where it has any.
fn explain(error: Error) -> anyhow::Error {
    match error {
        Error::Listen(error) => anyhow!("failed to create listener: {error}"),
        Error::Unwritable { .. } => anyhow!("{error}; choose another folder with --cert-dir"),
        error => error.into(),
    }
}
