//! A small HTTP/2 client with little overhead, so that the measures show the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::Endpoint;

/// Flow-control windows, large enough that the server never waits for the client.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// The media types of the API.
pub const JSON: &str = "application/json";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The number of bytes of an error's body to show.
const SHOWN: usize = 300;

/// One HTTP/2 connection.
#[derive(Clone)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    origin: Arc<str>,
    media: &'static str,
}

/// Several connections to one server, used in turn. They close when this value is dropped.
pub struct Client {
    connections: Vec<Connection>,
    next: AtomicUsize,
    _drivers: JoinSet<()>,
}

/// The metadata of a response whose body was read and discarded.
#[derive(Debug)]
pub struct Received {
    /// The size of the body.
    pub bytes: usize,
    /// The time from sending the request to the first byte of the body.
    pub first_byte: Duration,
    /// The first chunk of the body.
    pub head: Bytes,
    /// The last chunks of the body.
    pub tail: Bytes,
}

impl Client {
    /// Opens this number of connections.
    pub async fn connect(endpoint: &Endpoint, connections: usize) -> Result<Self> {
        let mut drivers = JoinSet::new();
        let mut opened = Vec::new();
        for _ in 0..connections {
            opened.push(open(endpoint, &mut drivers).await?);
        }
        Ok(Self { connections: opened, next: AtomicUsize::new(0), _drivers: drivers })
    }

    /// Sends and accepts this media type instead of JSON.
    #[must_use]
    pub fn speaking(mut self, media: &'static str) -> Self {
        self.connections.iter_mut().for_each(|connection| connection.media = media);
        self
    }

    /// The next connection in turn.
    pub fn connection(&self) -> &Connection {
        &self.connections[self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len()]
    }

    /// All connections.
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }
}

async fn open(endpoint: &Endpoint, drivers: &mut JoinSet<()>) -> Result<Connection> {
    let stream = TcpStream::connect(&endpoint.address).await.context("no connection")?;
    stream.set_nodelay(true)?;
    let connector = TlsConnector::from(Arc::clone(&endpoint.tls));
    let stream =
        connector.connect(endpoint.name.clone(), stream).await.context("the TLS handshake failed")?;
    let (sender, driver) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(TokioIo::new(stream))
        .await?;
    drivers.spawn(async move {
        // Requests on a broken connection fail with its error.
        let _ = driver.await;
    });
    Ok(Connection { sender, origin: format!("https://{}", endpoint.address).into(), media: JSON })
}

impl Connection {
    /// Sends a request and waits for the head of the response, which must be a success.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.origin));
        if !body.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, self.media);
        }
        let request = request.header(http::header::ACCEPT, self.media).body(Full::new(body))?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        bail!("{path}: {status}: {}", String::from_utf8_lossy(&body[..body.len().min(SHOWN)]))
    }

    /// Gets a path and reads the whole body.
    pub async fn get(&self, path: &str) -> Result<Bytes> {
        Ok(self.send(Method::GET, path, Bytes::new()).await?.into_body().collect().await?.to_bytes())
    }

    /// Posts a body and reads the whole response.
    pub async fn post(&self, path: &str, body: Bytes) -> Result<Bytes> {
        Ok(self.send(Method::POST, path, body).await?.into_body().collect().await?.to_bytes())
    }

    /// Gets a path and keeps only both ends of the body.
    pub async fn receive(&self, path: &str) -> Result<Received> {
        let begin = Instant::now();
        let mut body = self.send(Method::GET, path, Bytes::new()).await?.into_body();
        let mut received =
            Received { bytes: 0, first_byte: Duration::ZERO, head: Bytes::new(), tail: Bytes::new() };
        let mut last = [Bytes::new(), Bytes::new()];
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if received.bytes == 0 {
                received.first_byte = begin.elapsed();
                received.head = data.clone();
            }
            received.bytes += data.len();
            last = [std::mem::take(&mut last[1]), data];
        }
        let mut tail = BytesMut::from(&last[0][..]);
        tail.extend_from_slice(&last[1]);
        received.tail = tail.freeze();
        Ok(received)
    }
}

/// The first value of `"name":"…"` in a JSON text, without parsing it.
pub fn text_of<'a>(json: &'a [u8], name: &str) -> Option<&'a str> {
    let mark = format!("\"{name}\":\"");
    let begin = json.windows(mark.len()).position(|window| window == mark.as_bytes())? + mark.len();
    let length = json[begin..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&json[begin..begin + length]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_without_parsing() {
        let json = br#"{"metadata":{"resourceVersion":"42","continue":"abc"}}"#;
        assert_eq!(text_of(json, "resourceVersion"), Some("42"));
        assert_eq!(text_of(json, "continue"), Some("abc"));
        assert_eq!(text_of(json, "other"), None);
    }
}
