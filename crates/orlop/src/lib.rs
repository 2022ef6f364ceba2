//! The program `orlop`: a subcommand per role, and the drop-in names `kube-apiserver` and `etcd`.
//!
//! It is a library so that another binary can add products:
//!
//! ```no_run
//! # const GREETER: role::RoleDefinition = role::RoleDefinition {
//! #     name: "greeter", about: "Greet", flags: |command| command, configure: |_| Err("not configured".into()),
//! # };
//! fn main() -> std::process::ExitCode {
//!     orlop::run(&[GREETER])
//! }
//! ```

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
mod roles;
mod serve;
mod tokens;

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use role::RoleDefinition;

pub use crate::roles::ROLES;
use crate::{
    cli::{Action, Cli, ServeArgs},
    go_flags::Remarks,
};

/// The time that threads blocked in the operating system have to end before the process exits.
const LAST_WAIT: Duration = Duration::from_millis(20);

/// Runs the program with the arguments of the process. `up` runs these roles beside the server, and each of them is a subcommand.
#[must_use]
pub fn run(roles: &[RoleDefinition]) -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let arguments = || std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    match Path::new(&program).file_name().and_then(OsStr::to_str) {
        Some("kube-apiserver") => kube_apiserver::run(arguments()),
        Some("etcd") => etcd::run(arguments()),
        _ => run_subcommand(roles, &roles::add_to(Cli::command(), roles).get_matches()),
    }
}

fn run_subcommand(roles: &[RoleDefinition], matches: &ArgMatches) -> ExitCode {
    if let Some(alone) = roles::alone(roles, matches) {
        return exit("orlop", alone.and_then(|alone| block_on(alone.run())));
    }
    let cli = Cli::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    match cli.action {
        Action::KubeApiserver { flags } => kube_apiserver::run(flags.into_iter()),
        Action::Etcd { flags } => etcd::run(flags.into_iter()),
        Action::Backup(arguments) => {
            exit("orlop", block_on(backup::run(arguments, |name| std::env::var_os(name))))
        }
        Action::Doctor(arguments) => {
            let result = block_on(doctor::run(arguments, |name| std::env::var_os(name)));
            result.unwrap_or_else(|error| exit("orlop", Err(error)))
        }
        Action::Restore(arguments) => {
            exit("orlop", block_on(restore::run(arguments, |name| std::env::var_os(name))))
        }
        Action::Up(arguments) | Action::Serve(arguments) => {
            exit("orlop", roles::selected(roles, matches).and_then(|roles| serve(arguments, roles)))
        }
    }
}

fn serve(arguments: ServeArgs, roles: Vec<role::Role>) -> anyhow::Result<()> {
    let mut config = config::ServeConfig::new(arguments, |name| std::env::var_os(name))?;
    config.server.roles = roles;
    block_on(serve::run(config))
}

/// Runs a subcommand to its end.
fn block_on<T>(subcommand: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(subcommand);
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

/// Prints requested text. The reader may have closed the pipe.
fn print(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Logs notes and warnings about flags without effect, and fails for unsupported ones.
fn log_remarks(remarks: &Remarks) -> anyhow::Result<()> {
    for note in &remarks.notes {
        tracing::info!("{note}");
    }
    for warning in &remarks.warnings {
        tracing::warn!("{warning}");
    }
    if remarks.refusals.is_empty() { Ok(()) } else { Err(anyhow::anyhow!(remarks.refusals.join("; "))) }
}
