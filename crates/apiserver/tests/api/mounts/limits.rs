//! Streams of mounts, and the limits that they count into.

use std::time::Duration;

use apiserver::Limits;
use apiserver::auth::Connection;
use http::Request;
use http_body_util::Full;
use process::Shutdown;

use super::{CONSOLE, Product, allow, get, next, ready, server};
use crate::client::Client;

/// Opens a stream as alice.
async fn open(admin: &Client) -> (u16, apiserver::Body) {
    let request = Request::get(format!("{CONSOLE}/stream")).header("authorization", "Bearer alice");
    let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
    let (head, body) = admin.api.answer(&Connection::Bare, request).await.into_parts();
    (head.status.as_u16(), body)
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_no_timeout_and_ends_when_the_server_stops() {
    let (shutdown, token) = (Shutdown::new(), Shutdown::new());
    let end = shutdown.clone();
    let limits = Limits { request_timeout: Duration::from_secs(1), ..Limits::default() };
    let admin =
        server(&Product::default(), |builder| builder.limits(limits).shutdown(end).leaving(token)).await;
    allow(&admin, "alice", &["*"], &["*"]).await;
    let (code, mut body) = open(&admin).await;
    assert_eq!(code, 200);
    assert_eq!(next(&mut body).await.unwrap(), "data: first\n\n");
    tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
    assert_eq!(ready(&mut body), None, "it goes on for as long as the product likes");
    shutdown.request();
    assert_eq!(next(&mut body).await, None, "a clean end, no abort");
}

#[tokio::test]
async fn streams_count_as_watches_and_leave_the_slots_of_reads_alone() {
    let limits = Limits { reads_in_flight: 4, watches: 100, watches_per_user: 3, ..Limits::default() };
    let admin = server(&Product::default(), |builder| builder.limits(limits)).await;
    allow(&admin, "alice", &["*"], &["*"]).await;
    let mut open_streams = Vec::new();
    for _ in 0..3 {
        let (code, body) = open(&admin).await;
        assert_eq!(code, 200);
        open_streams.push(body);
    }
    let text = String::from_utf8(admin.get("/metrics").await.bytes.to_vec()).unwrap();
    assert!(text.contains("apiserver_longrunning_requests 3"), "{text}");
    assert_eq!(get(&admin.api, "alice", CONSOLE).await.code, 200, "reads have their slots");
    assert_eq!(open(&admin).await.0, 429, "one stream more than a user may have");
    open_streams.pop();
    assert_eq!(open(&admin).await.0, 200, "the end of a stream gives its place back");
}
