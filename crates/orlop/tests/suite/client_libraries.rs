//! Sessions with official client libraries: client-go's informers, Python, JavaScript.

use std::path::{Path, PathBuf};

use crate::clients::{Client, from_go, javascript, python};
use crate::server::Server;

/// Runs a script of `clients`, which asserts by itself and prints this sentence on success.
async fn session(program: PathBuf, script: &str, argument: &str, sentence: &str) {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").join(script);
    let line = format!("'{}' {argument}", script.display());
    Client { program, server: &server, folder: folder.path() }.expect(&line, sentence).await;
}

#[tokio::test]
async fn python_client() {
    let Some(program) = python() else { return };
    session(program, "python/session.py", "", "the Python client is served").await;
}

#[tokio::test]
async fn javascript_client() {
    let Some(folder) = javascript() else { return };
    let argument = format!("'{}'", folder.display());
    session("node".into(), "javascript/session.mjs", &argument, "the JavaScript client is served").await;
}

#[tokio::test]
async fn client_go_informers_over_protobuf() {
    let Some(program) = from_go("informers") else { return };
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    Client { program, server: &server, folder: folder.path() }.run("").await;
}
