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
        match self.link().await {
            Ok(link) => link.call(request).await,
            Err(error) => Ok(Err(error)),
        }
    }

    /// Asks for something that can be asked again on another connection.
    async fn ask<T: Wire>(&self, request: Request) -> Result<T, Error> {
        match self.once(&request).await {
            Ok(answer) => answer,
            Err(Lost) => self.once(&request).await.unwrap_or_else(|Lost| Err(lost())),
        }
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
        // Not twice: nobody knows whether it happened.
        self.once(&Request::Commit(batch)).await.unwrap_or_else(|Lost| Err(lost()))
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

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        self.ask(Request::Compact { through, limit }).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        // Not twice: the second would advance further.
        self.once(&Request::Advance(to)).await.unwrap_or_else(|Lost| Err(lost()))
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

fn lost() -> Error {
    unavailable("the connection to the database broke")
}

/// The connection ended before the answer came.
struct Lost;

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

    async fn call<T: Wire>(&self, request: &Request) -> Result<Result<T, Error>, Lost> {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let answered = self.waiting.expect(call).ok_or(Lost)?;
        self.outgoing.send(frame(call, request)).await.map_err(|_| Lost)?;
        let content = answered.await.map_err(|_| Lost)?;
        Ok(read(content).unwrap_or_else(|| {
            Err(Error::Corrupt { reason: "an answer of the database's server cannot be read".to_owned() })
        }))
    }
}

/// Who waits for an answer; nobody once the connection has ended.
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

    fn expect(&self, call: Call) -> Option<oneshot::Receiver<Bytes>> {
        let (answer, answered) = oneshot::channel();
        self.calls().as_mut()?.insert(call, answer);
        Some(answered)
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
