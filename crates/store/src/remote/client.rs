//! The side that asks: an engine whose database is behind a connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use model::{ObjectKey, Resource, Revision};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::Stream;
use super::frame::{BELL, Call, Frames, frame};
use super::message::{Request, read};
use super::wire::Wire;
use crate::engine::{Bound, Changes, Committed, Engine, Sweep, Transaction};
use crate::types::{ClockState, Error, ListQuery, Page, Stored};

/// Makes a connection on which the other side already speaks [`super::PROTOCOL`], or says why there is none.
pub type Connector = Arc<dyn Fn() -> BoxFuture<'static, Result<Box<dyn Stream>, String>> + Send + Sync>;

/// How long to wait before another attempt to connect when nobody asks for anything.
const RETRY: Duration = Duration::from_millis(100);

/// Frames that may wait to be sent; further callers wait for a place.
const OUTGOING: usize = 256;

/// How long a call may take, connecting included. The connection of a call that takes longer is ended, for whoever answers nothing
/// for so long is gone or stuck.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// An engine in another process. A connection that breaks is made again by whoever calls next.
pub struct Remote {
    connector: Connector,
    link: tokio::sync::Mutex<Slot>,
    /// Rings when another server committed, and after each connect, for one may have committed in between.
    bell: Arc<Notify>,
}

enum Slot {
    Empty,
    Linked(Arc<Link>),
    Closed,
}

impl Remote {
    /// Connects.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when that fails.
    pub async fn open(connector: Connector) -> Result<Self, Error> {
        let remote =
            Self { connector, link: tokio::sync::Mutex::new(Slot::Empty), bell: Arc::new(Notify::new()) };
        remote.link().await?;
        Ok(remote)
    }

    /// The connection that is, or a new one.
    async fn link(&self) -> Result<Arc<Link>, Error> {
        let mut slot = self.link.lock().await;
        match &*slot {
            Slot::Closed => return Err(unavailable("the store is closed")),
            Slot::Linked(link) if !link.is_ended() => return Ok(Arc::clone(link)),
            Slot::Linked(_) | Slot::Empty => {}
        }
        let stream = (self.connector)().await.map_err(unavailable)?;
        let link = Arc::new(Link::new(stream, Arc::clone(&self.bell)));
        *slot = Slot::Linked(Arc::clone(&link));
        self.bell.notify_one();
        Ok(link)
    }

    async fn once<T: Wire>(&self, request: &Request) -> Result<Result<T, Error>, Lost> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        match timeout_at(deadline, self.link()).await {
            Ok(Ok(link)) => link.call(request, deadline).await,
            Ok(Err(error)) => Ok(Err(error)),
            Err(_) => Ok(Err(unavailable("connecting to the database took too long"))),
        }
    }

    /// Asks for something that can be asked again on another connection.
    async fn ask<T: Wire>(&self, request: Request) -> Result<T, Error> {
        let answer = match self.once(&request).await {
            Err(Lost::Unsent | Lost::Broken) => self.once(&request).await,
            answer => answer,
        };
        answer.unwrap_or_else(|lost| Err(unavailable(lost.words())))
    }

    /// Asks for something that must not happen twice: once it was sent, nobody knows whether it happened.
    async fn tell<T: Wire>(&self, request: Request) -> Result<T, Error> {
        let answer = match self.once(&request).await {
            Err(Lost::Unsent) => self.once(&request).await,
            answer => answer,
        };
        answer.unwrap_or_else(|lost| match lost {
            Lost::Unsent => Err(unavailable(lost.words())),
            Lost::Broken | Lost::Late => Err(Error::OutcomeUnknown { reason: lost.words().to_owned() }),
        })
    }
}

#[async_trait]
impl Engine for Remote {
    async fn clock(&self) -> Result<ClockState, Error> {
        self.ask(Request::Clock).await
    }

    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        self.ask(Request::Get { key: key.clone(), at }).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        self.ask(Request::List(query.clone())).await
    }

    async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error> {
        self.tell(Request::Commit(batch)).await
    }

    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error> {
        self.ask(Request::Changes { of: of.cloned(), after, bound }).await
    }

    async fn bell(&self) {
        loop {
            match self.link().await {
                Ok(link) => tokio::select! {
                    () = self.bell.notified() => return,
                    () = link.ended() => {}
                },
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
        self.ask(Request::OlderThan(age)).await
    }

    async fn history_bytes(&self) -> Result<u64, Error> {
        self.ask(Request::HistoryBytes).await
    }

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        self.ask(Request::Compact { through, limit }).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        // The second of two would advance further.
        self.tell(Request::Advance(to)).await
    }

    async fn close(&self) {
        let slot = std::mem::replace(&mut *self.link.lock().await, Slot::Closed);
        if let Slot::Linked(link) = slot {
            link.waiting.end();
        }
    }
}

fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { reason: reason.into() }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// The connection ended before the call was handed to it.
    Unsent,
    /// The connection ended before the answer came.
    Broken,
    /// The answer did not come in time.
    Late,
}

impl Lost {
    fn words(self) -> &'static str {
        match self {
            Self::Unsent | Self::Broken => "the connection to the database broke",
            Self::Late => "the database did not answer in time",
        }
    }
}

/// One connection.
struct Link {
    next: AtomicU64,
    waiting: Arc<Waiting>,
    outgoing: mpsc::Sender<Vec<u8>>,
    /// They end with the link.
    _tasks: JoinSet<()>,
}

impl Link {
    fn new(stream: Box<dyn Stream>, bell: Arc<Notify>) -> Self {
        let (reading, writing) = tokio::io::split(stream);
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let waiting = Arc::new(Waiting::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(receive(reading, Arc::clone(&waiting), bell));
        tasks.spawn(send(writing, queue, Arc::clone(&waiting)));
        Self { next: AtomicU64::new(BELL + 1), waiting, outgoing, _tasks: tasks }
    }

    fn is_ended(&self) -> bool {
        *self.waiting.ended.borrow()
    }

    async fn ended(&self) {
        // The sender is in the link itself.
        let _ = self.waiting.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Sends a call and waits for its answer. At the deadline the connection ends, for this call and for all others on it.
    async fn call<T: Wire>(&self, request: &Request, deadline: Instant) -> Result<Result<T, Error>, Lost> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut expected = Waiting::expect(&self.waiting, number).ok_or(Lost::Unsent)?;
        let answer = async {
            self.outgoing.send(frame(number, request)).await.map_err(|_| Lost::Unsent)?;
            (&mut expected.answered).await.map_err(|_| Lost::Broken)
        };
        let content = timeout_at(deadline, answer).await.unwrap_or_else(|_| {
            tracing::warn!("the database did not answer in time; ending the connection to it");
            self.waiting.end();
            Err(Lost::Late)
        })?;
        Ok(read(content).unwrap_or_else(|| {
            Err(Error::Corrupt { reason: "an answer of the database's server cannot be read".to_owned() })
        }))
    }
}

/// A call that waits for its answer. Nobody waits any more when it is dropped, so that cancelled calls leave nothing behind.
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
    fn calls(&self) -> std::sync::MutexGuard<'_, Option<HashMap<Call, oneshot::Sender<Bytes>>>> {
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
            // A caller that is gone does not want to know.
            let _ = waiting.send(content);
        }
    }

    fn end(&self) {
        self.calls().take();
        self.ended.send_replace(true);
    }
}

async fn receive(reading: impl AsyncRead + Unpin, waiting: Arc<Waiting>, bell: Arc<Notify>) {
    let mut frames = Frames::new(reading);
    loop {
        match frames.next().await {
            Ok(Some((BELL, _))) => bell.notify_one(),
            Ok(Some((call, content))) => waiting.answer(call, content),
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the connection to the database broke");
                break;
            }
        }
    }
    waiting.end();
}

async fn send(
    mut writing: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    waiting: Arc<Waiting>,
) {
    while let Some(frame) = queue.recv().await {
        if writing.write_all(&frame).await.is_err() || writing.flush().await.is_err() {
            break;
        }
    }
    waiting.end();
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    /// A connection whose other side is in the hands of the test.
    async fn link() -> (Remote, Arc<Link>, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64);
        let stream = Mutex::new(Some(Box::new(ours) as Box<dyn Stream>));
        let connector: Connector = Arc::new(move || {
            let stream = stream.lock().unwrap().take().ok_or("nobody listens any more".to_owned());
            Box::pin(async { stream })
        });
        let remote = Remote::open(connector).await.unwrap();
        let link = remote.link().await.unwrap();
        (remote, link, theirs)
    }

    fn waiting(link: &Link) -> Option<usize> {
        link.waiting.calls().as_ref().map(HashMap::len)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_gets_no_answer_ends_with_its_connection() {
        for is_commit in [false, true] {
            // The other side never reads: the first frames fill the pipe, the rest waits to be sent.
            let (remote, link, _silent) = link().await;
            let begun = Instant::now();
            let answers = futures::future::join_all((0..2 * OUTGOING).map(|_| remote.clock()));
            let commit = async { if is_commit { Some(remote.commit(vec![vec![]]).await) } else { None } };
            let (commit, answers) = tokio::join!(commit, answers);
            assert!(answers.iter().all(|answer| matches!(answer, Err(Error::Unavailable { .. }))));
            if let Some(commit) = commit {
                assert!(matches!(commit, Err(Error::OutcomeUnknown { .. })), "{commit:?}");
            }
            assert!(begun.elapsed() <= CALL_TIMEOUT + Duration::from_millis(10), "{:?}", begun.elapsed());
            assert!(link.is_ended());
            // The next caller connects anew.
            assert_eq!(remote.clock().await, Err(unavailable("nobody listens any more")));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_leaves_nothing_behind() {
        let (remote, link, _silent) = link().await;
        for _ in 0..100 {
            assert!(tokio::time::timeout(Duration::from_millis(1), remote.clock()).await.is_err());
        }
        assert_eq!(waiting(&link), Some(0));
    }

    #[tokio::test]
    async fn a_commit_that_was_cut_off_has_an_unknown_outcome_and_one_that_was_never_sent_has_not() {
        let (remote, link, theirs) = link().await;
        let (commit, ()) = tokio::join!(remote.commit(vec![vec![]]), async {
            while waiting(&link) != Some(1) {
                tokio::task::yield_now().await;
            }
            drop(theirs);
        });
        assert!(matches!(commit, Err(Error::OutcomeUnknown { .. })), "{commit:?}");
        let unsent = remote.commit(vec![vec![]]).await;
        assert!(matches!(unsent, Err(Error::Unavailable { .. })), "{unsent:?}");
    }
}
