//! One connection to a webhook: TCP, TLS, then HTTP/2 or HTTP/1.1, whichever the server chooses by ALPN.

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
/// How often a connection with calls in flight is asked whether its other side is there, and how long that may take to say so.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

/// TLS with servers whose certificates come from the authorities of a bundle, or from those of the system; with the client certificate
/// that an operator configured for the webhook, if there is one.
pub(super) fn trusting(bundle: &[u8], own: Option<&Identity>) -> Result<Arc<ClientConfig>, String> {
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

/// Why there is no connection, in the words of Kubernetes.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    }
}

/// The side of a connection that takes requests.
pub(super) enum Sender {
    /// One request at a time.
    Http1(http1::SendRequest<Full<Bytes>>),
    /// Many at once, by clones.
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Why there is no response.
pub(super) enum Failure {
    /// Nothing of the request was written: it may be sent again.
    Unsent(String),
    /// The webhook may have seen the request.
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

    /// Sends a request as soon as the connection takes one.
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

/// hyper gives a request back that it has not begun to write.
fn failure(mut error: TrySendError<Request<Full<Bytes>>>) -> Failure {
    let is_unsent = error.take_message().is_some();
    let reason = error.into_error().to_string();
    if is_unsent { Failure::Unsent(reason) } else { Failure::Lost(reason) }
}

/// Connects and shakes hands. The task that moves the bytes ends when nobody has used the connection for a while.
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
    // Requests are small and somebody waits for the answer.
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
