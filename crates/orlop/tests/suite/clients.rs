//! Clients that the tests run: those of the machine, and those that `cargo xtask test` provides.

use std::path::{Path, PathBuf};

use test_tools::provided;
use tokio::process::Command;

use crate::server::Server;

/// A program of Debian's package; `None` if it could not be downloaded.
pub fn unpacked_from_debian(name: &str) -> Option<PathBuf> {
    provided(&format!("clients/debian/usr/bin/{name}"))
}

/// A program built from `clients/go`; `None` if Go is missing.
pub fn from_go(name: &str) -> Option<PathBuf> {
    provided(&format!("clients/go/{name}"))
}

/// The interpreter with the Python client; `None` if it could not be installed.
pub fn python() -> Option<PathBuf> {
    provided("clients/python/complete")?;
    provided("clients/python/bin/python")
}

/// The folder of the JavaScript client; `None` if it could not be installed.
pub fn javascript() -> Option<PathBuf> {
    let package = provided("clients/javascript/node_modules/@kubernetes/client-node/package.json")?;
    package.ancestors().nth(4).map(Path::to_path_buf)
}

/// A program, the server that it talks to, and the folder that it works in.
pub struct Client<'a> {
    /// Its path, or its name on PATH.
    pub program: PathBuf,
    /// The server, whose kubeconfig the program gets.
    pub server: &'a Server,
    /// Also its home.
    pub folder: &'a Path,
}

impl Client<'_> {
    /// Runs a line, whose words are separated by spaces or held together by single quotes; returns its
    /// output.
    pub async fn run(&self, line: &str) -> String {
        let (code, out, errors) = self.output(line).await;
        assert_eq!(code, Some(0), "{} {line}: {out}{errors}\n{}", self.program.display(), self.server.log());
        out
    }

    /// As [`Client::run`], also for a failure: exit code, output, errors.
    pub async fn output(&self, line: &str) -> (Option<i32>, String, String) {
        let output = Command::new(&self.program)
            .args(words(line))
            .env("KUBECONFIG", &self.server.kubeconfig)
            .env("HOME", self.folder)
            .env("KUBE_EDITOR", "sed -i s/first/edited/")
            .current_dir(self.folder)
            .kill_on_drop(true)
            .output();
        let output = output.await.expect("it was found a moment ago, or `cargo xtask test` has installed it");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Runs a line whose output must contain this.
    pub async fn expect(&self, line: &str, part: &str) {
        let out = self.run(line).await;
        assert!(out.contains(part), "{line}: no {part:?} in\n{out}");
    }
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
