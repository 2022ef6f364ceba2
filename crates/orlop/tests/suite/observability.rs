//! Logs, metrics and traces of a running server.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
};

use pgtest::PgServer;

use crate::{
    kubectl,
    server::{PATIENCE, Server},
};

#[tokio::test]
async fn json_log_format() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start("up", &folder.path().join("data"), &["--log-format", "json"]).await;
    server.stop("TERM").await;
    let log = server.log();
    assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{log}");
    assert!(log.contains(r#""message":"stopping""#), "{log}");
}

#[tokio::test]
async fn a_failed_request_is_logged_with_its_method_and_path() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), &["--postgres", &url]).await;
    drop(postgres);
    let path = "/api/v1/namespaces/default/configmaps/wanted";
    let output = kubectl::output(&server, &format!("get --raw {path}")).await;
    assert!(!output.status.success());
    let log = server.log();
    let is_about_it = |line: &&str| line.contains("request failed") && line.contains(path);
    let line = log.lines().find(is_about_it).expect("the failure is logged");
    for part in ["ERROR", "method=GET", "code=503", "the database is unavailable"] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[tokio::test]
async fn metrics_count_requests_and_commits() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("up", &folder.path().join("data"), &[]).await;
    kubectl::run(&server, "create configmap counted").await;
    let metrics = kubectl::run(&server, "get --raw /metrics").await;
    for name in ["apiserver_request_total", "store_commit_seconds_count"] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name} in {metrics}");
    }
}

/// Reads batches of spans until one contains all of the texts.
fn collect(listener: &TcpListener, texts: &[&str]) {
    loop {
        let (stream, _) = listener.accept().expect("the listener is open");
        let mut reader = BufReader::new(&stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("the head is text");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a length is a number");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body is as long as it says");
        (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("the sender waits");
        let body = String::from_utf8_lossy(&body);
        if texts.iter().all(|text| body.contains(text)) {
            return;
        }
    }
}

#[tokio::test]
async fn each_request_becomes_a_span_at_the_collector() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, collected) = mpsc::channel();
    thread::spawn(move || {
        collect(&listener, &["orlop", "request", "delete", "configmaps", "traced"]);
        sender.send(())
    });

    let mut server = Server::start("up", &folder.path().join("data"), &["--otlp-endpoint", &endpoint]).await;
    kubectl::run(&server, "create configmap traced").await;
    kubectl::run(&server, "delete configmap traced").await;
    assert!(server.stop("TERM").await.success());
    collected.recv_timeout(PATIENCE).expect("the last spans are sent before the process ends");
}
