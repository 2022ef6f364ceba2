//! Several API servers on one PostgreSQL database.

use std::process::Stdio;

use pgtest::PgServer;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

use crate::{
    kubectl,
    server::{PATIENCE, Server},
};

#[tokio::test]
async fn what_one_server_commits_reaches_watches_of_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let first = Server::start("serve", &folder.path().join("first"), &["--postgres", &url]).await;
    let second = Server::start("serve", &folder.path().join("second"), &["--postgres", &url]).await;
    assert!(!folder.path().join("first/orlop.db").exists(), "all data is in PostgreSQL");

    kubectl::run(&first, "create configmap seen-at-once").await;
    kubectl::run(&second, "get configmap seen-at-once").await;

    let mut watch = kubectl::command(&second)
        .args(["get", "configmaps", "--watch", "--output=name"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = timeout(PATIENCE, seen.next_line()).await.expect("an event comes");
        line.unwrap().expect("the watch goes on")
    };
    assert_eq!(next().await, "configmap/seen-at-once");
    kubectl::run(&first, "create configmap seen-by-watch").await;
    assert_eq!(next().await, "configmap/seen-by-watch");
}
