//! Sockets: accepts connections, runs TLS handshakes, and passes requests to the server.

mod connections;
mod sending;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use process::Shutdown;
use process::reload::Current;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use crate::api::ApiServer;
use crate::auth::Connection;
use crate::body::Body;
use crate::limits::{Limits, random_fraction};
use crate::pipeline::Authenticated;

use connections::{ConnectionSlot, Connections};
pub(crate) use sending::Unsent;
use sending::{Streams, Watchdog};

/// Converts the client certificates of a connection to its identity, once per connection.
pub type Peers = Arc<dyn Fn(&[CertificateDer<'_>]) -> Connection + Send + Sync>;

/// The time for clients to read their responses at shutdown.
const GRACE: Duration = Duration::from_millis(700);
/// Unsent bytes of an HTTP/2 stream before its body has to wait.
const SEND_BUFFER: usize = 64 << 10;
/// Bytes of request bodies that an HTTP/2 connection may send ahead of their readers; they are in memory before
/// authentication.
const RECEIVE_WINDOW: u32 = 128 << 10;
/// Delay if no connection can be accepted, for instance because of too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The response of requests during shutdown, and its Retry-After.
const SHUTDOWN_MESSAGE: &str = "The apiserver is shutting down, please try again later.\n";
const RETRY_AFTER_SECONDS: &str = "5";
/// The paths that are served until the end.
const SERVED_DURING_SHUTDOWN: [&str; 4] = ["/readyz", "/livez", "/healthz", "/metrics"];

/// Serves until shutdown; then ends watches and idle connections, completes the requests in flight, and returns.
pub async fn serve(
    listener: TcpListener,
    tls: impl Into<Current<rustls::ServerConfig>>,
    peers: Peers,
    api: ApiServer,
    shutdown: Shutdown,
) {
    let tls = tls.into();
    let room = Connections::new(api.limits.connections);
    let connected = |stream, slot, stop| {
        let (acceptor, peers, api) = (TlsAcceptor::from(tls.get()), peers.clone(), api.clone());
        connection(stream, slot, acceptor, peers, api, stop)
    };
    let mut connections = JoinSet::new();
    tokio::select! {
        biased;
        () = shutdown.requested() => {}
        () = accept_all(&listener, &room, &mut connections, |stream, slot| {
            connected(stream, slot, Stop::Ahead(shutdown.clone()))
        }) => {}
    }
    let send_away = async {
        if !api.limits.sends_late_requests_away {
            drop(listener);
            return std::future::pending().await;
        }
        let mut late = JoinSet::new();
        accept_all(&listener, &room, &mut late, |stream, slot| connected(stream, slot, Stop::Begun)).await;
    };
    let answered = async {
        tokio::select! {
            () = drain(connections, &api) => {}
            () = send_away => {}
        }
    };
    // The Lease is released while the last clients read their responses.
    tokio::join!(answered, api.lease_release.wait());
}

/// Waits for the requests in flight.
async fn drain(mut connections: JoinSet<()>, api: &ApiServer) {
    let mut drained = std::pin::pin!(async { while connections.join_next().await.is_some() {} });
    let latest = Instant::now() + api.limits.request_timeout;
    while timeout(GRACE, drained.as_mut()).await.is_err() {
        // A client that does not read is not waited for.
        if api.metrics.in_flight.get() == 0 || Instant::now() >= latest {
            tracing::info!("shutdown closes connections with unread responses");
            return;
        }
    }
}

/// The shutdown state of a connection.
enum Stop {
    /// Not requested yet.
    Ahead(Shutdown),
    /// Begun: one request is answered, most with a 503.
    Begun,
}

impl Stop {
    async fn requested(&self) {
        match self {
            Self::Ahead(shutdown) => shutdown.requested().await,
            Self::Begun => std::future::pending().await,
        }
    }
}

/// Accepts connections for ever.
async fn accept_all<F>(
    listener: &TcpListener,
    room: &Arc<Connections>,
    tasks: &mut JoinSet<()>,
    connected: impl Fn(TcpStream, ConnectionSlot) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    // Kept across iterations: an accepted connection must not get lost while it waits for a slot.
    let mut next = Box::pin(accept(listener, room));
    loop {
        tokio::select! {
            Some(_) = tasks.join_next() => {}
            accepted = &mut next => {
                next = Box::pin(accept(listener, room));
                if let Some((stream, slot)) = accepted {
                    tasks.spawn(connected(stream, slot));
                }
            }
        }
    }
}

/// The next connection, once there is a slot.
async fn accept(listener: &TcpListener, room: &Arc<Connections>) -> Option<(TcpStream, ConnectionSlot)> {
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, room.enter().await?)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection; closing an idle one and retrying");
            room.close_unauthenticated();
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

async fn connection(
    stream: TcpStream,
    slot: ConnectionSlot,
    acceptor: TlsAcceptor,
    peers: Peers,
    api: ApiServer,
    stop: Stop,
) {
    // One limit for the handshake and the first request head.
    let head_by = Instant::now() + api.limits.head_timeout;
    let address = stream.peer_addr().map(|address| address.ip().to_canonical()).ok();
    // Responses are small and latency matters.
    let _ = stream.set_nodelay(true);
    let handshake = std::pin::pin!(acceptor.accept(stream));
    let handshake = timeout_at(head_by, api.pacer.pace(handshake));
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        // A connection without a request is dropped at shutdown.
        () = stop.requested() => return,
        () = slot.closed() => return,
    };
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!("TLS handshake timed out");
            return;
        }
    };
    let peer = stream.get_ref().1.peer_certificates().map_or(Connection::Bare, |chain| peers(chain));
    serve_connection(stream, Session { peer: Arc::new(peer), address, slot, head_by }, api, stop).await;
}

/// The peer of a connection.
struct Session {
    peer: Arc<Connection>,
    address: Option<IpAddr>,
    slot: ConnectionSlot,
    /// The deadline of the first request head.
    head_by: Instant,
}

/// Serves HTTP/1.1 or HTTP/2 until the client disconnects, is idle for too long, or the server stops.
async fn serve_connection<S>(stream: S, session: Session, api: ApiServer, stop: Stop)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = api.limits.clone();
    let Session { peer, address, slot, head_by } = session;
    let activity = Arc::new(Activity::new(slot));
    let watchdog = Watchdog::new(api.unsent.clone());
    let (tracked, watched) = (activity.clone(), watchdog.clone());
    let leave = Arc::new(Notify::new());
    let last = leave.clone();
    let is_late = matches!(stop, Stop::Begun);
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(address) = address.filter(|_| api.audit.is_some()) {
            request.extensions_mut().insert(address);
        }
        let (api, peer, watched, busy) = (api.clone(), peer.clone(), watched.clone(), tracked.begin());
        let chance = api.limits.goaway_chance;
        if is_late || chance > 0.0 && request.version() == Version::HTTP_2 && random_fraction() < chance {
            last.notify_one();
        }
        async move {
            let is_sent_away =
                is_late && !SERVED_DURING_SHUTDOWN.iter().any(|path| request.uri().path().starts_with(path));
            let response =
                if is_sent_away { retry_later(request.version()) } else { api.answer(&peer, request).await };
            if response.extensions().get::<Authenticated>().is_some() {
                busy.0.slot.authenticate();
            }
            // The connection is busy until the body of a watch ends.
            Ok::<_, Infallible>(watched.follow(response, busy))
        }
    });
    let builder = protocols(&limits);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut stop = std::pin::pin!(stop.requested());
    let mut stalled = std::pin::pin!(watchdog.keep(&limits));
    let mut silent = std::pin::pin!(activity.silent_until(head_by));
    let mut stopping = false;
    loop {
        tokio::select! {
            () = &mut stalled => return,
            () = &mut silent => return,
            () = activity.slot.closed() => return,
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection ended early");
                }
                return;
            }
            () = &mut stop, if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = leave.notified(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = activity.idle_for(limits.idle_timeout), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// HTTP/1.1 and HTTP/2 with the limits.
fn protocols(limits: &Limits) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams::default());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout)
        .max_buf_size(limits.header_bytes.max(16 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_per_connection)
        .max_send_buf_size(SEND_BUFFER)
        .initial_connection_window_size(RECEIVE_WINDOW)
        .initial_stream_window_size(RECEIVE_WINDOW)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

/// The 503 of requests during shutdown.
fn retry_later(version: Version) -> Response<Body> {
    let mut response = Response::builder()
        .status(StatusCode::TOO_MANY_REQUESTS)
        .header(RETRY_AFTER, RETRY_AFTER_SECONDS)
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(SHUTDOWN_MESSAGE.into())
        .expect("the headers are constants");
    // HTTP/2 sends GOAWAY instead.
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The activity of a connection.
struct Activity {
    slot: ConnectionSlot,
    open: AtomicUsize,
    has_begun: AtomicBool,
    changed: tokio::sync::watch::Sender<Instant>,
}

impl Activity {
    fn new(slot: ConnectionSlot) -> Self {
        Self {
            slot,
            open: AtomicUsize::new(0),
            has_begun: AtomicBool::new(false),
            changed: tokio::sync::watch::Sender::new(Instant::now()),
        }
    }

    fn begin(self: &Arc<Self>) -> Busy {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.has_begun.store(true, Ordering::Relaxed);
        self.slot.begin();
        Busy(self.clone())
    }

    /// Returns at this time if no request has arrived.
    async fn silent_until(&self, time: Instant) {
        tokio::time::sleep_until(time).await;
        if self.has_begun.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        tracing::debug!("connection had no request in time; closing it");
    }

    /// Returns after this long without an open request.
    async fn idle_for(&self, time: Duration) {
        loop {
            let last = *self.changed.borrow();
            tokio::time::sleep_until(last + time).await;
            let still = *self.changed.borrow() == last;
            if self.open.load(Ordering::Relaxed) > 0 {
                self.changed.send_replace(Instant::now());
            } else if still {
                return;
            }
        }
    }
}

/// An open request.
struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.slot.end();
        self.0.changed.send_replace(Instant::now());
    }
}

#[cfg(test)]
mod tests;
