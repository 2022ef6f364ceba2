//! The README's tour: every line of it is run, in its order, against a fresh server.

use std::{fs, path::Path, process::Stdio};

use tokio::process::Command;

use crate::server::Server;

/// The lines between a fence of this language and the next one.
fn block(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let lines = text.lines().skip_while(|line| *line != fence).skip(1);
    lines.take_while(|line| *line != "```").map(str::to_owned).collect()
}

#[tokio::test]
async fn every_line_of_the_tour_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tour = block(&fs::read_to_string(root.join("README.md")).unwrap(), "tour");
    assert!(tour.len() > 10, "the tour is in the README");
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("up", &folder.path().join("data"), &[]).await;
    for line in tour {
        let mut words = line.split_whitespace();
        let output = Command::new(words.next().expect("no line is empty"))
            .args(words)
            .env("KUBECONFIG", &server.kubeconfig)
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("kubectl is installed; `cargo xtask test` does that");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}\n{}", server.log());
        assert!(!output.stdout.is_empty(), "{line} prints something");
    }
}
