//! A connection to a webhook: TCP, TLS, then HTTP/2 or HTTP/1.1 by ALPN.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use process::pki::Identity;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::pool::{Tasks, Usage};

const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// Interval and timeout of HTTP/2 pings while calls are in flight.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

/// TLS with the CAs of a bundle or of the system, and with the operator's client certificate if there is one.
pub(super) fn tls_config(bundle: &[u8], own: Option<&Identity>) -> Result<Arc<ClientConfig>, String> {
    let config = match bundle.trim_ascii().is_empty() {
        true => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            process::tls::client_config_with_roots(roots, own)
        }
        false => process::tls::client_config(bundle, own),
    };
    let config = config.map_err(|error| format!("unable to load root certificates: {error}"))?;
    let mut config = ClientConfig::clone(&config);
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}

/// Kubernetes' message of a connection error.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    }
}

/// The sending side of a connection.
pub(super) enum Sender {
    /// One request at a time.
    Http1(http1::SendRequest<Full<Bytes>>),
    /// Concurrent requests, by clones.
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// The reason of a missing response.
pub(super) enum Failure {
    /// No byte of the request was sent: it may be retried.
    Unsent(String),
    /// The webhook may have received the request.
    Lost(String),
}

impl Failure {
    pub fn into_reason(self) -> String {
        let (Self::Unsent(reason) | Self::Lost(reason)) = self;
        reason
    }
}

impl Sender {
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    pub fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Sends a request as soon as the connection is ready.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        let ready = match self {
            Self::Http1(sender) => sender.ready().await,
            Self::Http2(sender) => sender.ready().await,
        };
        ready.map_err(|error| Failure::Unsent(error.to_string()))?;
        let sent = match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(sender) => sender.try_send_request(request).await,
        };
        sent.map_err(failure)
    }
}

/// hyper returns a request that it has not begun to send.
fn failure(mut error: TrySendError<Request<Full<Bytes>>>) -> Failure {
    let is_unsent = error.take_message().is_some();
    let reason = error.into_error().to_string();
    if is_unsent { Failure::Unsent(reason) } else { Failure::Lost(reason) }
}

/// Connects and handshakes. The connection's task ends after an idle timeout.
pub(super) async fn open(
    address: SocketAddr,
    host: &str,
    tls: Arc<ClientConfig>,
    tasks: &Tasks,
    usage: &Arc<Usage>,
) -> Result<Sender, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| format!("dial tcp {address}: {}", reason(&error)))?;
    // Requests are small and latency matters.
    let _ = stream.set_nodelay(true);
    let stream =
        TlsConnector::from(tls).connect(name, stream).await.map_err(|error| format!("tls: {error}"))?;
    let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    let failed = |error: hyper::Error| error.to_string();
    if chosen.as_deref() == Some(PROTOCOLS[0]) {
        let mut builder = http2::Builder::new(tasks.executor());
        builder.timer(TokioTimer::new()).keep_alive_interval(PING.0).keep_alive_timeout(PING.1);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(failed)?;
        tasks.drive(connection, Arc::clone(usage));
        return Ok(Sender::Http2(sender));
    }
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tasks.drive(connection, Arc::clone(usage));
    Ok(Sender::Http1(sender))
}
