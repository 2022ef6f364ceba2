//! The drop-in `kube-apiserver`: the API server as launchers of test environments start it, on the store of an `etcd` of this program.
//!
//! It runs only what a bare kube-apiserver runs: no controllers, and it writes no kubeconfig.

mod access;
mod admission;
mod apis;
mod audit;
mod authentication;
mod config;
mod flags;
mod gates;
mod serve;
mod storage;

use std::process::ExitCode;

use process::logging;

use self::config::Config;
pub(crate) use self::flags::FLAGS;
use crate::go_flags::{self, BadArguments, Dialect, Given, Help};

/// The output of `--version`: the version of Kubernetes that is served.
const VERSION: &str = "v1.35.4";

const ABOUT: &str = "\
The Kubernetes API server, with kube-apiserver's name and flags.

It stores objects in the `etcd` of this program (`etcd --help`), and runs no controllers and no scheduler.
Use `orlop up` for a control plane with one command.

Usage:
  kube-apiserver [flags]
  orlop kube-apiserver [flags]

Example:
  etcd --data-dir ./etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 &
  kube-apiserver --etcd-servers http://127.0.0.1:2379 --cert-dir ./certs --authorization-mode RBAC \\
    --token-auth-file tokens.csv --service-account-issuer https://kubernetes.default.svc \\
    --service-account-key-file sa.key --service-account-signing-key-file sa.key
";

const GLOBAL: &str = "
Global flags:

  -h, --help                                             print help
      --version[=raw]                                    print the version of Kubernetes that is served
";

/// Runs until a signal arrives. The arguments are those behind the program's name.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let given = match go_flags::parse(FLAGS, Dialect::Pflag, arguments).and_then(without_words) {
        Ok(given) => given,
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if given.help {
        crate::print(&format!("{ABOUT}{}{GLOBAL}", Help(FLAGS)));
        return ExitCode::SUCCESS;
    }
    match given.version.as_deref() {
        None | Some("false") => {}
        Some("raw") => {
            crate::print(&format!("version.Info{{Major:\"1\", Minor:\"35\", GitVersion:\"{VERSION}\"}}\n"));
            return ExitCode::SUCCESS;
        }
        Some(_) => {
            crate::print(&format!("Kubernetes {VERSION}\n"));
            return ExitCode::SUCCESS;
        }
    }
    let result = Config::new(&given).and_then(|config| {
        logging::install(&config.log, None)?;
        crate::log_remarks(&given.remarks())?;
        crate::block_on(serve::run(config))
    });
    crate::exit("kube-apiserver", result)
}

/// Refuses arguments that are neither flags nor empty.
pub(crate) fn without_words(given: Given) -> Result<Given, BadArguments> {
    if given.rest.iter().all(String::is_empty) { Ok(given) } else { Err(BadArguments::Words(given.rest)) }
}
