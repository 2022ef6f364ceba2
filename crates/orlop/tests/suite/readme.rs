//! The README's tour: every line of it is run, in its order, against a fresh server.

use std::{fs, path::Path};

use crate::{kubectl, server::Server};

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
        let printed =
            kubectl::run(&server, line.strip_prefix("kubectl ").expect("the tour is kubectl's")).await;
        assert!(!printed.is_empty(), "{line} prints something");
    }
}
