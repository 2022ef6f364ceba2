//! One connection to the process that has the database: pending calls, and the two tasks that carry them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tasks::Tasks;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::Stream;
use super::frame::{BELL, Call, Frames, frame};
use super::message::{Request, read};
use super::wire::Wire;
use crate::types::Error;

/// Frames that may wait to be sent; further callers wait for a slot.
pub const OUTGOING: usize = 256;

/// Reason for a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The connection ended before the call was handed to it.
    Unsent,
    /// The connection ended before the answer came.
    Broken,
    /// The answer did not come in time.
    Late,
    /// The server refused: the clock was advanced, and this side has not checked the history since.
    Outdated,
}

impl Lost {
    pub fn words(self) -> &'static str {
        match self {
            Self::Unsent | Self::Broken => "the connection to the database broke",
            Self::Late => "the database did not answer in time",
            Self::Outdated => "the history of the database changed and is being checked again",
        }
    }
}

/// One connection. It ends when this is dropped.
pub struct Link {
    next: AtomicU64,
    waiting: Arc<Waiting>,
    outgoing: mpsc::Sender<Vec<u8>>,
    /// Whether the history of the database was checked on this connection.
    is_checked: AtomicBool,
}

impl Link {
    /// Starts the tasks of a connection.
    pub fn start(stream: Box<dyn Stream>, bell: Arc<Notify>, tasks: &Tasks) -> Self {
        let (reading, writing) = tokio::io::split(stream);
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let waiting = Arc::new(Waiting::default());
        let receiving = receive(reading, Arc::clone(&waiting), bell);
        tasks.start_finite("the remote store reader", until_end(Arc::clone(&waiting), receiving));
        let sending = send(writing, queue);
        tasks.start_finite("the remote store writer", until_end(Arc::clone(&waiting), sending));
        Self { next: AtomicU64::new(BELL + 1), waiting, outgoing, is_checked: AtomicBool::new(false) }
    }

    pub fn is_ended(&self) -> bool {
        *self.waiting.ended.borrow()
    }

    pub async fn ended(&self) {
        // The sender is in the link itself.
        let _ = self.waiting.ended.subscribe().wait_for(|ended| *ended).await;
    }

    pub fn end(&self) {
        self.waiting.end();
    }

    pub fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::Acquire)
    }

    /// Sets whether the history of the database was checked on this connection.
    pub fn set_checked(&self, is_checked: bool) {
        self.is_checked.store(is_checked, Ordering::Release);
    }

    /// Sends a call and waits for its answer. At the deadline the connection ends, for this call and for all
    /// others on it.
    pub async fn call<T: Wire>(
        &self,
        request: &Request,
        deadline: Instant,
    ) -> Result<Result<T, Error>, Lost> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut expected = Waiting::expect(&self.waiting, number).ok_or(Lost::Unsent)?;
        let answer = async {
            self.outgoing.send(frame(number, request)).await.map_err(|_| Lost::Unsent)?;
            (&mut expected.answered).await.map_err(|_| Lost::Broken)
        };
        let content = timeout_at(deadline, answer).await.unwrap_or_else(|_| {
            tracing::warn!("the database did not answer in time; ending the connection to it");
            self.end();
            Err(Lost::Late)
        })?;
        match read::<Option<Result<T, Error>>>(content) {
            Some(Some(answer)) => Ok(answer),
            Some(None) => Err(Lost::Outdated),
            None => {
                let reason = "an answer of the database's server cannot be read".to_owned();
                Ok(Err(Error::Corrupt { reason }))
            }
        }
    }

    /// Number of pending calls; none once the connection has ended.
    #[cfg(test)]
    pub fn waiting(&self) -> Option<usize> {
        self.waiting.calls().as_ref().map(HashMap::len)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// A pending call. It is deregistered when it is dropped, so that cancelled calls leave nothing behind.
struct Expected {
    number: Call,
    answered: oneshot::Receiver<Bytes>,
    waiting: Arc<Waiting>,
}

impl Drop for Expected {
    fn drop(&mut self) {
        if let Some(calls) = self.waiting.calls().as_mut() {
            calls.remove(&self.number);
        }
    }
}

/// Calls that wait for an answer; none once the connection has ended.
struct Waiting {
    calls: Mutex<Option<HashMap<Call, oneshot::Sender<Bytes>>>>,
    ended: watch::Sender<bool>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { calls: Mutex::new(Some(HashMap::new())), ended: watch::Sender::new(false) }
    }
}

impl Waiting {
    fn calls(&self) -> MutexGuard<'_, Option<HashMap<Call, oneshot::Sender<Bytes>>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(waiting: &Arc<Self>, number: Call) -> Option<Expected> {
        let (answer, answered) = oneshot::channel();
        waiting.calls().as_mut()?.insert(number, answer);
        Some(Expected { number, answered, waiting: Arc::clone(waiting) })
    }

    fn answer(&self, call: Call, content: Bytes) {
        let waiting = self.calls().as_mut().and_then(|calls| calls.remove(&call));
        if let Some(waiting) = waiting {
            // A caller that was dropped needs no answer.
            let _ = waiting.send(content);
        }
    }

    fn end(&self) {
        self.calls().take();
        self.ended.send_replace(true);
    }
}

/// Ends a connection when it is dropped.
struct EndOfLink(Arc<Waiting>);

impl Drop for EndOfLink {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs a task of a connection until the connection ends. The connection ends with the task, also by a panic.
async fn until_end(waiting: Arc<Waiting>, task: impl Future<Output = ()>) {
    let link = EndOfLink(waiting);
    let mut ended = link.0.ended.subscribe();
    tokio::select! {
        () = task => {}
        _ = ended.wait_for(|ended| *ended) => {}
    }
}

async fn receive(reading: impl AsyncRead + Unpin, waiting: Arc<Waiting>, bell: Arc<Notify>) {
    let mut frames = Frames::new(reading);
    loop {
        match frames.next().await {
            Ok(Some((BELL, _))) => bell.notify_one(),
            Ok(Some((call, content))) => waiting.answer(call, content),
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "the connection to the database broke");
                return;
            }
        }
    }
}

async fn send(mut writing: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = queue.recv().await {
        if writing.write_all(&frame).await.is_err() || writing.flush().await.is_err() {
            return;
        }
    }
}
