//! `up` and `serve`: runs a server until a signal or a failure.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, Result, anyhow};
use process::{logging, shutdown, telemetry::Traces};
use server::{Error, Server};

use crate::config::ServeConfig;

/// Serves until a signal arrives or a task fails.
pub(crate) async fn run(config: ServeConfig) -> Result<()> {
    let traces = match &config.otlp_endpoint {
        None => None,
        Some(endpoint) => Some(Traces::to(endpoint, "orlop", env!("CARGO_PKG_VERSION"))?),
    };
    logging::install(&config.log, traces.as_ref())?;
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let result = serve(config.server).await;
    if let Some(traces) = traces {
        traces.finish();
    }
    result
}

async fn serve(mut config: server::Config) -> Result<()> {
    let mut signals = shutdown::signals().context("cannot listen for signals")?;
    config.raise_descriptor_limit();
    // The start waits for a database that does not answer: a signal must end that wait.
    let server = tokio::select! {
        started = Server::start(config) => started.map_err(explain)?,
        _ = signals.received() => return Ok(()),
    };
    if let (Some(address), Some(kubeconfig)) = (server.host_and_port(), server.kubeconfig_path()) {
        print_welcome(&mut io::stdout(), address, kubeconfig);
    }
    tokio::select! {
        signal = signals.received() => tracing::info!(signal, "stopping"),
        _ = server.failed() => {}
    }
    Ok(server.shutdown().await?)
}

/// Adds the flag that helps.
fn explain(error: Error) -> anyhow::Error {
    match error {
        Error::Listen(_) => anyhow!("{error}; --listen HOST:PORT names the address"),
        Error::Unwritable { .. } => {
            anyhow!("{error}; choose another folder with --data, or make this one writable")
        }
        error => error.into(),
    }
}

/// Prints the next steps.
fn print_welcome(out: &mut impl Write, address: &str, kubeconfig: &Path) {
    // A closed standard output is no reason to stop.
    let _ = writeln!(
        out,
        "Orlop is ready at https://{address}\n  \
         kubeconfig  {path}\n  \
         try         kubectl --kubeconfig {quoted} get namespaces",
        path = kubeconfig.display(),
        quoted = quoted(kubeconfig),
    );
    let _ = out.flush();
}

/// The path as a shell word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+~@%:,=".contains(character);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(kubeconfig: &str) -> String {
        let mut out = Vec::new();
        print_welcome(&mut out, "127.0.0.1:6443", Path::new(kubeconfig));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_welcome_has_a_line_that_a_shell_takes() {
        assert!(
            printed("/data/kubeconfig").ends_with("kubectl --kubeconfig /data/kubeconfig get namespaces\n")
        );
        let odd = printed("/it's mine/kubeconfig");
        assert!(odd.contains(r"--kubeconfig '/it'\''s mine/kubeconfig' get"), "{odd}");
    }
}
