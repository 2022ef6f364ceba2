//! The connection pool of one webhook: spread over its addresses, bounded in number and idle time.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::connection::{self, Failure, Sender};

/// Concurrent calls of one webhook; further ones wait within their timeout.
const CALLS: usize = 256;
/// Idle HTTP/1.1 connections, as in Go clients.
const IDLE: usize = 25;
/// The idle timeout, as in Go clients.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The connect timeout if there are other addresses to try.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);
/// The time that an unreachable address is tried last.
const AVOIDED: Duration = Duration::from_secs(5);

/// The tasks of connections; they end with the webhook.
#[derive(Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

/// Runs the tasks of HTTP/2 connections. Weak, because a task that owned its owner would never end.
#[derive(Clone)]
pub(super) struct Executor(Weak<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        if let Some(tasks) = self.0.upgrade() {
            spawn(&tasks, async move { drop(task.await) });
        }
    }
}

fn spawn(tasks: &Mutex<JoinSet<()>>, task: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    while tasks.try_join_next().is_some() {}
    tasks.spawn(task);
}

impl Tasks {
    pub fn executor(&self) -> Executor {
        Executor(Arc::downgrade(&self.0))
    }

    /// Runs a connection until it ends or is idle for too long.
    pub fn drive<C>(&self, connection: C, usage: Arc<Usage>)
    where
        C: Future<Output = hyper::Result<()>> + Send + 'static,
    {
        spawn(&self.0, async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "webhook connection ended early");
                    }
                }
                () = usage.expires() => {}
            }
        });
    }
}

/// The number of calls on a connection, and the start of its idle time.
pub(super) struct Usage(Mutex<(usize, Instant)>);

impl Default for Usage {
    fn default() -> Self {
        Self(Mutex::new((0, Instant::now())))
    }
}

impl Usage {
    fn state(&self) -> MutexGuard<'_, (usize, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) {
        self.state().0 += 1;
    }

    fn end(&self) {
        let mut state = self.state();
        *state = (state.0.saturating_sub(1), Instant::now());
    }

    /// The end of the idle timeout.
    fn deadline(&self) -> Instant {
        let (used, since) = *self.state();
        let since = if used > 0 { Instant::now() } else { since };
        since + IDLE_TIMEOUT
    }

    async fn expires(&self) {
        loop {
            let deadline = self.deadline();
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

/// A pooled connection.
struct PooledConnection {
    address: SocketAddr,
    sender: Sender,
    usage: Arc<Usage>,
}

#[derive(Default)]
struct PoolState {
    kept: Vec<PooledConnection>,
    /// Unreachable addresses, with the time of the failure.
    failed: Vec<(SocketAddr, Instant)>,
    /// The round-robin position.
    turn: usize,
}

/// The connections of one webhook.
pub(super) struct ConnectionPool {
    tasks: Tasks,
    calls: Semaphore,
    state: Mutex<PoolState>,
}

/// A connection in use. Dropped before its response is read, it is closed (HTTP/1.1), or loses this stream (HTTP/2).
pub(super) struct ConnectionLease<'p> {
    pool: &'p ConnectionPool,
    address: SocketAddr,
    /// `Some` until the lease is returned.
    sender: Option<Sender>,
    usage: Arc<Usage>,
    /// Whether the connection was used before.
    pub is_reused: bool,
}

impl ConnectionLease<'_> {
    pub fn is_http2(&self) -> bool {
        self.sender.as_ref().is_some_and(Sender::is_http2)
    }

    /// Sends a request.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        match &mut self.sender {
            Some(sender) => sender.send(request).await,
            None => Err(Failure::Unsent("the connection was given back".to_owned())),
        }
    }

    /// Returns the connection to the pool after its response was read. HTTP/2 connections are in the pool from the start.
    pub fn give_back(mut self) {
        let Some(sender @ Sender::Http1(_)) = self.sender.take().filter(|sender| !sender.is_closed()) else {
            return;
        };
        let mut state = self.pool.state();
        let idle = state.kept.iter().filter(|kept| !kept.sender.is_http2()).count();
        if idle < IDLE {
            state.kept.push(PooledConnection {
                address: self.address,
                sender,
                usage: Arc::clone(&self.usage),
            });
        }
    }
}

impl Drop for ConnectionLease<'_> {
    fn drop(&mut self) {
        self.usage.end();
    }
}

impl Default for ConnectionPool {
    fn default() -> Self {
        Self { tasks: Tasks::default(), calls: Semaphore::new(CALLS), state: Mutex::default() }
    }
}

impl ConnectionPool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a concurrent call.
    pub async fn call_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.calls.acquire().await.ok()
    }

    /// A connection to one of these addresses by round robin: a pooled one, or a new one if there is none or `is_fresh` is
    /// set.
    ///
    /// # Errors
    /// The error of the first address.
    pub async fn connection(
        &self,
        addresses: &[SocketAddr],
        host: &str,
        tls: &Arc<ClientConfig>,
        is_fresh: bool,
    ) -> Result<ConnectionLease<'_>, String> {
        let order = self.order(addresses);
        let mut first = None;
        for (at, address) in order.iter().enumerate() {
            if let Some(kept) = (!is_fresh).then(|| self.take(*address)).flatten() {
                return Ok(kept);
            }
            let usage = Arc::new(Usage::default());
            usage.begin();
            let opening = connection::open(*address, host, Arc::clone(tls), &self.tasks, &usage);
            let opened = match at + 1 < order.len() {
                true => timeout(DIAL_TIMEOUT, opening)
                    .await
                    .unwrap_or_else(|_| Err(format!("dial tcp {address}: i/o timeout"))),
                false => opening.await,
            };
            match opened {
                Ok(sender) => return Ok(self.opened(*address, sender, usage)),
                Err(reason) => {
                    self.state().failed.push((*address, Instant::now()));
                    first.get_or_insert(reason);
                }
            }
        }
        Err(first.unwrap_or_else(|| format!("dial tcp: lookup {host}: no such host")))
    }

    /// The addresses in the order of attempts: round robin, recently failed ones last.
    fn order(&self, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let mut state = self.state();
        state.failed.retain(|(_, when)| when.elapsed() < AVOIDED);
        let turn = state.turn;
        state.turn = turn.wrapping_add(1);
        let mut order = addresses.to_vec();
        if !order.is_empty() {
            order.rotate_left(turn % addresses.len());
        }
        order.sort_by_key(|address| state.failed.iter().any(|(failed, _)| failed == address));
        order
    }

    /// A pooled connection to an address. HTTP/2 connections are shared, others are removed from the pool.
    fn take(&self, address: SocketAddr) -> Option<ConnectionLease<'_>> {
        let mut state = self.state();
        state.kept.retain(|kept| !kept.sender.is_closed());
        let at = state.kept.iter().position(|kept| kept.address == address)?;
        let (sender, usage) = match &state.kept[at].sender {
            Sender::Http2(sender) => (Sender::Http2(sender.clone()), Arc::clone(&state.kept[at].usage)),
            Sender::Http1(_) => {
                let kept = state.kept.remove(at);
                (kept.sender, kept.usage)
            }
        };
        usage.begin();
        Some(ConnectionLease { pool: self, address, sender: Some(sender), usage, is_reused: true })
    }

    fn opened(&self, address: SocketAddr, sender: Sender, usage: Arc<Usage>) -> ConnectionLease<'_> {
        if let Sender::Http2(sender) = &sender {
            let mut state = self.state();
            // If several were opened concurrently, the last one is shared; the others end with their calls.
            state.kept.retain(|kept| !(kept.address == address && kept.sender.is_http2()));
            let (sender, usage) = (Sender::Http2(sender.clone()), Arc::clone(&usage));
            state.kept.push(PooledConnection { address, sender, usage });
        }
        ConnectionLease { pool: self, address, sender: Some(sender), usage, is_reused: false }
    }
}
