//! A span is sent to a collector, which is a socket that reads one request.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

use tracing_subscriber::{Registry, layer::SubscriberExt};

use super::*;

/// A received request: its first line, its headers in lower case, and its body.
struct Sent {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

fn take_one_request(listener: &TcpListener) -> Sent {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(&stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_ascii_lowercase()),
        }
    }
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    Sent { line: lines.remove(0), headers: lines, body }
}

#[test]
fn a_span_with_its_fields_reaches_the_collector() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint: Endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let collector = thread::spawn(move || take_one_request(&listener));

    let traces = Traces::to(&endpoint, "the-service", "1.2.3").unwrap();
    tracing::subscriber::with_default(Registry::default().with(traces.layer()), || {
        tracing::info_span!("create_object", resource = "configmaps").in_scope(|| tracing::info!("stored"));
    });
    traces.provider.force_flush().unwrap();

    let sent = collector.join().unwrap();
    assert_eq!(sent.line, "post /v1/traces http/1.1");
    assert!(sent.headers.contains(&"content-type: application/x-protobuf".to_owned()), "{:?}", sent.headers);
    assert!(
        sent.headers.contains(&format!("host: {}", endpoint.0.authority().unwrap())),
        "{:?}",
        sent.headers
    );
    for text in ["the-service", "1.2.3", "create_object", "resource", "configmaps", "stored"] {
        assert!(
            sent.body.windows(text.len()).any(|window| window == text.as_bytes()),
            "{text} is in the body"
        );
    }
    traces.finish();
}

#[test]
fn a_collector_that_is_away_does_not_hold_up_the_end() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let traces = Traces::to(&format!("http://{closed}").parse().unwrap(), "the-service", "1").unwrap();
    tracing::subscriber::with_default(Registry::default().with(traces.layer()), || {
        tracing::info_span!("lost").in_scope(|| {});
    });
    let start = std::time::Instant::now();
    traces.finish();
    assert!(start.elapsed() < FINISH_TIMEOUT * 4, "{:?}", start.elapsed());
}

#[test]
fn an_endpoint_is_an_http_address_to_which_the_path_is_added_once() {
    let shown = |text: &str| text.parse::<Endpoint>().map(|endpoint| endpoint.to_string());
    assert_eq!(shown("http://collector:4318").unwrap(), "http://collector:4318/v1/traces");
    assert_eq!(shown("http://[::1]:4318/").unwrap(), "http://[::1]:4318/v1/traces");
    assert_eq!(shown("http://collector/otel/v1/traces").unwrap(), "http://collector/otel/v1/traces");
    for text in ["collector:4318", "https://collector", "http://", "/v1/traces", "http://c?x=1", "http://a b"]
    {
        assert!(shown(text).is_err(), "{text}");
    }
}
