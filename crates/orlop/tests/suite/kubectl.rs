//! Runs kubectl against a server of the test.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use tokio::process::Command;

use crate::server::Server;

/// A kubectl for this server, in the folder of the repository, with a cache of its own: another server may
/// get the same port.
pub fn command(server: &Server) -> Command {
    let home = server.kubeconfig.parent().expect("the kubeconfig is in the data folder");
    let mut command = Command::new("kubectl");
    command.env("KUBECONFIG", &server.kubeconfig).env("HOME", home).stdin(Stdio::null()).kill_on_drop(true);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

/// Runs kubectl, which must succeed; returns its output.
pub async fn run(server: &Server, line: &str) -> String {
    let output = output(server, line).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {line}: {errors}\n{}", server.log());
    String::from_utf8(output.stdout).expect("kubectl prints text")
}

/// Runs kubectl to its end, whether it succeeds or not.
pub async fn output(server: &Server, line: &str) -> Output {
    let output = command(server).args(line.split_whitespace()).output().await;
    output.expect("kubectl is installed; `cargo xtask test` does that")
}
