//! The binary: one subcommand per role, and two names that other people's tools start it by.

mod admission;
mod audit;
mod auth;
mod backup;
mod cli;
mod config;
mod doctor;
mod etcd;
mod go_flags;
mod kube_apiserver;
mod postgres;
mod restore;
mod serve;
mod tokens;

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use clap::Parser;

use crate::{
    cli::{Role, ServeArgs},
    go_flags::Remarks,
};

/// What a thread that is stuck in the operating system may take before the process ends without it.
const LAST_WAIT: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let arguments = || std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    match Path::new(&program).file_name().and_then(OsStr::to_str) {
        Some("kube-apiserver") => kube_apiserver::run(arguments()),
        Some("etcd") => etcd::run(arguments()),
        _ => match cli::Cli::parse().role {
            Role::KubeApiserver { flags } => kube_apiserver::run(flags.into_iter()),
            Role::Etcd { flags } => etcd::run(flags.into_iter()),
            Role::Backup(arguments) => {
                exit("orlop", block_on(backup::run(arguments, |name| std::env::var_os(name))))
            }
            Role::Doctor(arguments) => {
                let result = block_on(doctor::run(arguments, |name| std::env::var_os(name)));
                result.unwrap_or_else(|error| exit("orlop", Err(error)))
            }
            Role::Restore(arguments) => {
                exit("orlop", block_on(restore::run(arguments, |name| std::env::var_os(name))))
            }
            Role::Up(arguments) | Role::Serve(arguments) => exit("orlop", serve(arguments)),
        },
    }
}

fn serve(arguments: ServeArgs) -> anyhow::Result<()> {
    // `up` will run further roles beside the API server; today it is the server alone.
    let config = config::ServeConfig::new(arguments, |name| std::env::var_os(name))?;
    block_on(serve::run(config))
}

/// Runs a role to its end.
fn block_on<T>(role: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(role);
    runtime.shutdown_timeout(LAST_WAIT);
    result
}

fn exit(program: &str, result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a text that was asked for; whoever asked may have stopped to read.
fn print(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Tells the operator what becomes of flags that do not do what they say.
fn log_remarks(remarks: &Remarks) -> anyhow::Result<()> {
    for note in &remarks.notes {
        tracing::info!("{note}");
    }
    for warning in &remarks.warnings {
        tracing::warn!("{warning}");
    }
    if remarks.refusals.is_empty() { Ok(()) } else { Err(anyhow::anyhow!(remarks.refusals.join("; "))) }
}
