//! The binary: one subcommand per role.

mod callers;
mod cli;
mod config;
mod database;
mod kubeconfig;
mod namespaces;
mod renewal;
mod serve;
mod tokens;

use std::{process::ExitCode, time::Duration};

use clap::Parser;

/// What a thread that is stuck in the operating system may take before the process ends without it.
const LAST_WAIT: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("orlop: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: cli::Cli) -> anyhow::Result<()> {
    let config = config::Config::new(cli, |name| std::env::var_os(name))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve::run(config));
    runtime.shutdown_timeout(LAST_WAIT);
    result
}
