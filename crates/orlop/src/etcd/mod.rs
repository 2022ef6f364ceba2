//! The drop-in `etcd`: a process that owns databases and serves them to `kube-apiserver`, as launchers of test environments expect it.

mod config;
mod databases;
mod flags;
mod server;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use process::shutdown::{self, StopSignals};
use process::{Shutdown, Supervisor, files, logging};

use self::config::Config;
use self::databases::Databases;
pub(crate) use self::flags::FLAGS;
use crate::go_flags::{self, Dialect, Help};

/// The version of etcd whose flags and responses are reproduced.
const VERSION: &str = "3.6.0";

/// The default of kube-apiserver's `--etcd-prefix`.
pub(crate) const USUAL_PREFIX: &str = "/registry";

/// The path of the store protocol, on the same address as the health endpoints.
pub(crate) const STORE_PATH: &str = "/orlop/store";

/// The header that selects the database.
pub(crate) const PREFIX_HEADER: &str = "orlop-prefix";

const ABOUT: &str = "\
The object store of a Kubernetes control plane, with etcd's name and flags.

It keeps one SQLite database for each --etcd-prefix in a folder, and serves them to any number of `kube-apiserver` of this
program, which connect by --etcd-servers. It does not speak etcd's protocol: etcdctl and other etcd clients are refused.

Without --cert-file it serves plain text without authentication, as etcd does: every user of this machine can read and write all
objects, including Secrets. With --cert-file, --key-file, --client-cert-auth and --trusted-ca-file only clients with a
certificate can.

Usage:
  etcd [flags]
  orlop etcd [flags]

Example:
  etcd --data-dir ./etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379
";

/// Runs until a signal arrives. The arguments are those behind the program's name.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let given = match go_flags::parse(FLAGS, Dialect::Standard, arguments) {
        Ok(given) => given,
        Err(error) => {
            eprintln!("{error}\n`etcd --help` lists the flags");
            return ExitCode::from(2);
        }
    };
    if given.help {
        crate::print(&format!("{ABOUT}{}", Help(FLAGS)));
        return ExitCode::SUCCESS;
    }
    if given.version.is_some() {
        crate::print(&format!("etcd Version: {VERSION}\nOrlop Version: {}\n", env!("CARGO_PKG_VERSION")));
        return ExitCode::SUCCESS;
    }
    let result = Config::new(&given).and_then(|config| {
        logging::install(&config.log, None)?;
        crate::log_remarks(&given.remarks())?;
        process::descriptors::raise_limit();
        crate::block_on(serve(config))
    });
    crate::exit("etcd", result)
}

async fn serve(config: Config) -> Result<()> {
    let signals = shutdown::signals().context("cannot listen for signals")?;
    let mut supervisor = Supervisor::new(Shutdown::new());
    let databases = Arc::new(Databases::new(config.folder, config.durability));
    // Opened before the first request, so that an unusable or locked folder fails the start.
    databases.of(USUAL_PREFIX).await?;
    files::warn_if_open(databases.folder());
    let tls = config.tls.as_ref();
    for address in &config.listen {
        let listener = address.address.bind().await?;
        let tls = if address.is_secure { tls.cloned() } else { None };
        tracing::info!(address = %listener.local_addr()?, data = %databases.folder().display(), "serving client traffic");
        let databases = Arc::clone(&databases);
        let serving = server::serve(listener, tls, databases, server::CONNECTIONS, supervisor.shutdown());
        supervisor.start("the server", serving);
    }
    let opened = Arc::clone(&databases);
    supervisor.watch("the database", async move { opened.failed().await });
    let shutdown = supervisor.shutdown();
    supervisor.start("the signal handler", stop_on_signal(signals, shutdown));
    let result = supervisor.run().await;
    databases.close().await;
    Ok(result?)
}

/// Requests the stop when a signal arrives.
async fn stop_on_signal(mut signals: StopSignals, shutdown: Shutdown) -> io::Result<()> {
    tokio::select! {
        signal = signals.received() => tracing::info!(signal, "stopping"),
        () = shutdown.requested() => {}
    }
    shutdown.request();
    Ok(())
}
