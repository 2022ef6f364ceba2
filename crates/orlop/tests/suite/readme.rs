//! The README's tour: every line of it is run, in its order, against a fresh server.

use std::{fs, path::Path, process::Stdio};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::{
    kubectl,
    server::{PATIENCE, Server},
};

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
    let mut behind = Vec::new();
    for line in tour {
        let command = line.strip_prefix("kubectl ").expect("the tour is kubectl's");
        if let Some(command) = command.strip_suffix(" &") {
            behind.push(start(&server, command));
        } else if let Some((command, words)) = command.split_once(" # refused: ") {
            let output = kubectl::output(&server, command).await;
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains(words), "{line}: {said}");
        } else {
            assert!(!kubectl::run(&server, command).await.is_empty(), "{line} prints something");
        }
    }
    for mut child in behind {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = timeout(PATIENCE, lines.next_line()).await.expect("what runs behind prints").unwrap();
        assert!(first.is_some());
    }
}

/// Starts a line that ends with `&` in the background; it ends with the test.
fn start(server: &Server, line: &str) -> Child {
    kubectl::command(server)
        .args(line.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl can be run")
}
