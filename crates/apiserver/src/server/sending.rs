//! Responses being sent: their unsent bytes, and the abort of stalled ones.
//!
//! hyper polls a body only when there is room for more, so a body cannot notice that the client stopped reading. Each chunk
//! therefore reports when its bytes are sent, and a watchdog of the connection checks the responses with unsent bytes. A
//! response without progress is aborted: its content is dropped with all that it holds, its HTTP/2 stream is reset, an
//! HTTP/1.1 connection is closed.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::Response;
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Busy;
use crate::body::{Aborted, Body, Ends};
use crate::limits::Limits;

/// The longest time between two checks.
const TICK: Duration = Duration::from_secs(1);

/// Bytes that count as progress: a client that reads single bytes makes none.
const PROGRESS: usize = 64 << 10;

/// The divisor of the time limit while too many bytes are unsent.
const PRESSURE: u32 = 12;

/// The unsent bytes of all responses of a server.
#[derive(Debug)]
pub(crate) struct Unsent {
    bytes: AtomicUsize,
    limit: usize,
}

impl Unsent {
    pub fn new(limit: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), limit }
    }

    /// Whether the unsent bytes exceed the limit.
    pub fn is_over_limit(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.limit
    }

    /// The longest time of a response without progress.
    fn patience(&self, limits: &Limits) -> Duration {
        if self.is_over_limit() { limits.stall_timeout / PRESSURE } else { limits.stall_timeout }
    }
}

/// The responses of one connection.
pub(super) struct Watchdog {
    begin: Instant,
    unsent: Arc<Unsent>,
    responses: Mutex<Vec<Weak<Sending>>>,
    /// Whether the watchdog is checking.
    is_awake: AtomicBool,
    bell: Notify,
}

impl Watchdog {
    pub fn new(unsent: Arc<Unsent>) -> Arc<Self> {
        Arc::new(Self {
            begin: Instant::now(),
            unsent,
            responses: Mutex::default(),
            is_awake: AtomicBool::new(false),
            bell: Notify::new(),
        })
    }

    /// Tracks a response until its last byte is sent.
    pub fn follow(self: &Arc<Self>, response: Response<Body>, busy: Busy) -> Response<Tracked> {
        let ends = response.extensions().get::<Ends>().map(|ends| ends.0);
        let stream = STREAM.try_with(Arc::clone).ok();
        response.map(|body| {
            let sending = Arc::new(Sending {
                content: Mutex::new(Some(body)),
                unsent: AtomicUsize::new(0),
                progress: AtomicU64::new(0),
                left: AtomicUsize::new(0),
                ends,
                stream,
                watchdog: Arc::clone(self),
                _busy: busy,
            });
            let mut responses = held(&self.responses);
            if responses.len() == responses.capacity() {
                responses.retain(|response| response.strong_count() > 0);
            }
            responses.push(Arc::downgrade(&sending));
            Tracked(sending)
        })
    }

    /// Aborts responses without progress. Returns when the whole connection has to be closed.
    pub async fn keep(&self, limits: &Limits) {
        let tick = (limits.stall_timeout / PRESSURE).min(TICK);
        loop {
            self.bell.notified().await;
            loop {
                tokio::time::sleep(tick).await;
                if self.abort_stalled(self.unsent.patience(limits), tick) {
                    return;
                }
                if !self.is_needed() {
                    self.is_awake.store(false, Ordering::SeqCst);
                    // Bytes that arrived meanwhile have either woken the watchdog, or are seen here.
                    if !self.is_needed() || self.is_awake.swap(true, Ordering::SeqCst) {
                        break;
                    }
                }
            }
        }
    }

    fn open(&self) -> Vec<Arc<Sending>> {
        held(&self.responses).iter().filter_map(Weak::upgrade).collect()
    }

    fn is_needed(&self) -> bool {
        self.open().iter().any(|response| response.unsent.load(Ordering::SeqCst) > 0)
    }

    fn wake(&self) {
        if !self.is_awake.swap(true, Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Aborts stalled responses; true if the connection has to be closed.
    fn abort_stalled(&self, patience: Duration, tick: Duration) -> bool {
        let now = self.now();
        let mut is_over = false;
        for response in self.open() {
            let since = Duration::from_millis(now.saturating_sub(response.progress.load(Ordering::Relaxed)));
            // A watch that is past its end is not waited for.
            let is_late = response.ends.is_some_and(|ends| Instant::now() >= ends) && since >= tick;
            if response.unsent.load(Ordering::SeqCst) > 0 && (since >= patience || is_late) {
                tracing::debug!(?since, "response makes no progress; aborting it");
                is_over |= response.abort();
            }
        }
        is_over
    }
}

/// A response. It is dropped when hyper drops its body and all of its chunks.
pub(super) struct Sending {
    /// The body; `None` after an abort.
    content: Mutex<Option<Body>>,
    unsent: AtomicUsize,
    /// The time of the last progress, or of the first bytes: milliseconds since the connection began.
    progress: AtomicU64,
    /// Bytes sent since then.
    left: AtomicUsize,
    ends: Option<Instant>,
    /// Resets the HTTP/2 stream.
    stream: Option<Arc<Notify>>,
    watchdog: Arc<Watchdog>,
    _busy: Busy,
}

impl Sending {
    fn hand_out(&self, bytes: usize) {
        if self.unsent.fetch_add(bytes, Ordering::SeqCst) == 0 {
            self.makes_progress();
        }
        self.watchdog.unsent.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.watchdog.wake();
    }

    fn sent(&self, bytes: usize) {
        self.watchdog.unsent.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if self.left.fetch_add(bytes, Ordering::Relaxed) + bytes >= PROGRESS {
            self.makes_progress();
        }
        self.unsent.fetch_sub(bytes, Ordering::SeqCst);
    }

    fn makes_progress(&self) {
        self.progress.store(self.watchdog.now(), Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
    }

    /// Drops the unsent content; true if there is no HTTP/2 stream to reset.
    fn abort(&self) -> bool {
        drop(held(&self.content).take());
        match &self.stream {
            Some(stream) => {
                stream.notify_one();
                false
            }
            None => true,
        }
    }
}

/// The response body for hyper.
pub(super) struct Tracked(Arc<Sending>);

impl http_body::Body for Tracked {
    type Data = Piece;
    type Error = Aborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Aborted>>> {
        let sending = &self.0;
        let mut content = held(&sending.content);
        let Some(body) = content.as_mut() else { return Poll::Ready(Some(Err(Aborted))) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| {
                    sending.hand_out(bytes.len());
                    Piece { bytes, sending: Arc::clone(sending) }
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        held(&self.0.content).as_ref().is_some_and(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        held(&self.0.content).as_ref().map(http_body::Body::size_hint).unwrap_or_default()
    }
}

/// A chunk that reports when its bytes are sent.
pub(super) struct Piece {
    bytes: Bytes,
    sending: Arc<Sending>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.sending.sent(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.sending.sent(self.bytes.len());
    }
}

tokio::task_local! {
    /// Resets the HTTP/2 stream of the current request.
    static STREAM: Arc<Notify>;
}

/// The tasks of an HTTP/2 connection, one per stream. They end with the connection.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut tasks = held(&self.0);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let reset = Arc::new(Notify::new());
            let stream = STREAM.scope(Arc::clone(&reset), stream);
            // Dropping a stream resets it.
            tokio::select! {
                _ = stream => {}
                () = reset.notified() => {}
            }
        });
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
