//! Responses on their way to the client: how much of each is unsent, and the end of those that make no progress.
//!
//! hyper polls a body only when there is room for more, so a body cannot notice by itself that nobody reads it. Each piece therefore
//! tells when its bytes leave, and a watchdog of the connection looks at the responses that have unsent bytes. A response without
//! progress is aborted: its content is dropped with all that it holds, its HTTP/2 stream is reset, an HTTP/1.1 connection is closed.

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

/// The longest time between two looks at responses with unsent bytes.
const TICK: Duration = Duration::from_secs(1);

/// Bytes that have to leave until a response counts as one that makes progress: a client that reads a byte now and then does not.
const PROGRESS: usize = 64 << 10;

/// By how much patience shrinks while too many bytes of responses are unsent.
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

    /// Whether responses wait for their readers with more bytes than they should.
    pub fn is_over_limit(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.limit
    }

    /// How long a response may be without progress.
    fn patience(&self, limits: &Limits) -> Duration {
        if self.is_over_limit() { limits.stall_timeout / PRESSURE } else { limits.stall_timeout }
    }
}

/// The responses of one connection.
pub(super) struct Watchdog {
    begin: Instant,
    unsent: Arc<Unsent>,
    responses: Mutex<Vec<Weak<Sending>>>,
    /// Whether somebody looks after unsent bytes already.
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

    /// A response whose bytes are followed until the last of them has left.
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

    /// Aborts responses without progress. Returns when that takes the end of the whole connection.
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
                    // Bytes that came meanwhile have either rung, or are seen here.
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

    /// Whether the connection has to be closed.
    fn abort_stalled(&self, patience: Duration, tick: Duration) -> bool {
        let now = self.now();
        let mut is_over = false;
        for response in self.open() {
            let since = Duration::from_millis(now.saturating_sub(response.progress.load(Ordering::Relaxed)));
            // A watch whose time is over is not waited for.
            let is_late = response.ends.is_some_and(|ends| Instant::now() >= ends) && since >= tick;
            if response.unsent.load(Ordering::SeqCst) > 0 && (since >= patience || is_late) {
                tracing::debug!(?since, "response makes no progress; aborting it");
                is_over |= response.abort();
            }
        }
        is_over
    }
}

/// One response. It goes when hyper has let go of its body and of all of its pieces.
pub(super) struct Sending {
    /// The body and all that it holds; nothing once it was aborted.
    content: Mutex<Option<Body>>,
    unsent: AtomicUsize,
    /// When it last made progress, or its first bytes came: milliseconds since the connection began.
    progress: AtomicU64,
    /// Bytes that left since then.
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

    /// Drops what it still had to send. Whether there is no stream that could end without its connection.
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

/// The body of a response as hyper sees it.
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

/// Bytes that tell when they leave.
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
    /// Resets the HTTP/2 stream whose request runs.
    static STREAM: Arc<Notify>;
}

/// The tasks of an HTTP/2 connection, one for each stream. They end with the connection.
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
            // A stream that is dropped is reset.
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
