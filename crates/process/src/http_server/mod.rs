//! A small HTTP server for the endpoints of one component: webhooks, health checks, metrics.
//!
//! It reads each body whole, within limits, so that the memory of all requests is bounded. A handler that panics fails its own request only.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Body as _, Incoming},
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::Shutdown;

/// The wait before the next connection is accepted when the operating system refuses one.
const ACCEPT_DELAY: Duration = Duration::from_millis(100);
/// The time that open requests have to end when a stop is requested. With the time to close connections it is less than a supervisor waits.
const GRACE: Duration = Duration::from_millis(500);
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// The unit in which the memory of bodies is counted.
const KIB: usize = 1024;

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections. Further ones wait.
    pub connections: usize,
    /// Requests that are handled at the same time. Further ones wait, and get 503 where that takes too long.
    pub requests: usize,
    /// The memory of all request bodies together.
    pub body_bytes: usize,
    /// The time until the head of the first request, with the TLS handshake.
    pub header_timeout: Duration,
    /// The time in which a body has to arrive.
    pub body_timeout: Duration,
    /// The time of a whole request, with its body.
    pub request_timeout: Duration,
    /// The time that a connection may be without a request.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            requests: 64,
            body_bytes: 128 << 20,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
        }
    }
}

/// The handler of a server's requests.
pub trait Handler: Send + Sync + 'static {
    /// The longest body that a request to this path may have. A longer one is answered with 413.
    fn body_bytes_max(&self, path: &str) -> usize;

    /// Handles a request.
    fn handle(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>> + Send;
}

/// A response with a text for people.
#[must_use]
pub fn text(status: StatusCode, text: impl Into<String>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Serves until a stop is requested, then answers the open requests and returns. Without `tls` it speaks plain HTTP.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    limits: Limits,
    handler: H,
    shutdown: Shutdown,
) {
    let shared = Arc::new(Shared {
        requests: Semaphore::new(limits.requests),
        body_kib: Semaphore::new(limits.body_bytes / KIB),
        limits,
        handler,
    });
    let acceptor = tls.map(TlsAcceptor::from);
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(shutdown.requested());
    loop {
        let next = async {
            let permit = Arc::clone(&room).acquire_owned().await.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            (accepted, permit) = next => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, acceptor.clone(), Arc::clone(&shared), shutdown.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection; retrying");
                    sleep(ACCEPT_DELAY).await;
                }
            },
        }
    }
    drop(listener);
    let _ = timeout(GRACE + CLOSE_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
}

/// The state that all connections share.
struct Shared<H> {
    limits: Limits,
    requests: Semaphore,
    body_kib: Semaphore,
    handler: H,
}

async fn connection<H: Handler>(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    shared: Arc<Shared<H>>,
    shutdown: Shutdown,
) {
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else { return speak(stream, shared, shutdown).await };
    match timeout(shared.limits.header_timeout, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, shared, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// Speaks HTTP/1.1 or HTTP/2 until the client closes the connection, is idle for too long, or a stop is requested.
async fn speak<S, H>(stream: S, shared: Arc<Shared<H>>, shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let limits = shared.limits;
    let activity = Arc::new(Activity::default());
    let noted = Arc::clone(&activity);
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, busy) = (Arc::clone(&shared), noted.begin());
        async move {
            let response = shared.respond(request).await;
            drop(busy);
            Ok::<_, std::convert::Infallible>(response.map(Full::new))
        }
    });
    // It owns the tasks of HTTP/2 streams: they end with the connection.
    let streams = Arc::default();
    let mut builder = auto::Builder::new(Streams(Arc::downgrade(&streams)));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.idle_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(u32::try_from(limits.requests).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30));
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(error = %error, "a connection ended early");
            }
            return;
        }
        () = activity.idle(&limits) => {}
        () = shutdown.requested() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(GRACE, connection).await;
}

impl<H: Handler> Shared<H> {
    async fn respond(&self, request: Request<Incoming>) -> Response<Bytes> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        match timeout(self.limits.request_timeout, self.handle(request)).await {
            Ok(Ok(response) | Err(response)) => response,
            Err(_) => {
                tracing::warn!(%method, path, "a request took too long");
                text(StatusCode::GATEWAY_TIMEOUT, "the request took too long\n")
            }
        }
    }

    async fn handle(&self, request: Request<Incoming>) -> Result<Response<Bytes>, Response<Bytes>> {
        let (head, body) = request.into_parts();
        let most = self.handler.body_bytes_max(head.uri.path());
        let size = body.size_hint();
        if size.lower() > most as u64 {
            return Err(too_large(most));
        }
        let expected = size.upper().map_or(most, |upper| usize::try_from(upper).unwrap_or(most).min(most));
        let kib = expected.div_ceil(KIB).min(self.limits.body_bytes / KIB);
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let patience = self.limits.request_timeout / 4;
        let Ok(_room) = timeout(patience, self.body_kib.acquire_many(kib)).await else { return Err(busy()) };
        let body = match timeout(self.limits.body_timeout, Limited::new(body, most).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large(most)),
            Ok(Err(_)) => return Err(text(StatusCode::BAD_REQUEST, "the request body cannot be read\n")),
            Err(_) => return Err(text(StatusCode::REQUEST_TIMEOUT, "the request body took too long\n")),
        };
        // Taken behind the body, so that a slow client keeps no handler waiting.
        let Ok(_turn) = timeout(patience, self.requests.acquire()).await else { return Err(busy()) };
        let path = head.uri.path().to_owned();
        let handled = AssertUnwindSafe(self.handler.handle(Request::from_parts(head, body))).catch_unwind();
        handled.await.map_err(|_| {
            tracing::error!(path, "the handler of a request panicked; this is a defect of the program");
            text(StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
        })
    }
}

fn busy() -> Response<Bytes> {
    let mut busy = text(StatusCode::SERVICE_UNAVAILABLE, "too many requests, please try again later\n");
    busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    busy
}

fn too_large(most: usize) -> Response<Bytes> {
    text(StatusCode::PAYLOAD_TOO_LARGE, format!("the request body is longer than {most} bytes\n"))
}

/// The requests of one connection.
struct Activity {
    has_begun: AtomicBool,
    open: AtomicUsize,
    last: Mutex<Instant>,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            has_begun: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        }
    }
}

/// A request that is being handled.
struct Busy(Arc<Activity>);

impl Activity {
    fn begin(self: &Arc<Self>) -> Busy {
        self.has_begun.store(true, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the connection has been without a request for too long.
    async fn idle(&self, limits: &Limits) {
        loop {
            let limit = match self.has_begun.load(Ordering::Relaxed) {
                true => limits.idle_timeout,
                false => limits.header_timeout,
            };
            let end = match self.open.load(Ordering::Relaxed) {
                0 => *self.last() + limit,
                _ => Instant::now() + limit,
            };
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.last() = Instant::now();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts the tasks of HTTP/2 streams.
#[derive(Clone)]
struct Streams(Weak<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        if let Some(streams) = self.0.upgrade() {
            let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
            // Finished tasks hold memory until they are joined.
            while streams.try_join_next().is_some() {}
            streams.spawn(stream);
        }
    }
}

#[cfg(test)]
mod tests;
