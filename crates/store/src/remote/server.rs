//! The side that has the database.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use model::Revision;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use super::Stream;
use super::frame::{BELL, Call, Frames, frame};
use super::message::{Request, read};
use crate::engine::{Committed, Engine, Transaction};
use crate::types::{ClockState, Error};

/// Calls of one connection that are worked on at once; further ones wait on the connection.
const AT_ONCE: usize = 1024;

/// A database that several connections share.
pub struct Shared {
    engine: Arc<dyn Engine>,
    /// Which connection committed last: everyone else hears the bell.
    committed_by: watch::Sender<u64>,
    connections: AtomicU64,
}

impl Shared {
    /// Shares an engine that nobody else commits to.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, committed_by: watch::Sender::new(0), connections: AtomicU64::new(1) }
    }

    /// Ends the engine; connections answer that it is closed from here on.
    pub async fn close(&self) {
        self.engine.close().await;
    }

    async fn commit(&self, batch: Vec<Transaction>, connection: u64) -> Result<Committed, Error> {
        let committed = self.engine.commit(batch).await?;
        if !committed.changes.is_empty() {
            self.committed_by.send_replace(connection);
        }
        Ok(committed)
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        let clock = self.engine.advance(to).await?;
        // No connection has this number: all of them have to look.
        self.committed_by.send_replace(0);
        Ok(clock)
    }

    async fn answer(&self, call: Call, request: Request, connection: u64) -> Vec<u8> {
        match request {
            Request::Clock => frame(call, &self.engine.clock().await),
            Request::Get { key, at } => frame(call, &self.engine.get(&key, at).await),
            Request::List(query) => frame(call, &self.engine.list(&query).await),
            Request::Commit(batch) => frame(call, &self.commit(batch, connection).await),
            Request::Changes { of, after, bound } => {
                frame(call, &self.engine.changes(of.as_ref(), after, bound).await)
            }
            Request::OlderThan(age) => frame(call, &self.engine.older_than(age).await),
            Request::Compact { through, limit } => frame(call, &self.engine.compact(through, limit).await),
            Request::Advance(to) => frame(call, &self.advance(to).await),
        }
    }
}

/// Answers the calls of one connection until its other side goes or `stop` is ready. Commits that have begun are finished in
/// either case, for others wait to hear of them.
///
/// # Errors
/// When the connection breaks, or its other side speaks something else.
pub async fn serve(
    stream: impl Stream,
    shared: Arc<Shared>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (reading, writing) = tokio::io::split(stream);
    let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut side = Side {
        bell: shared.committed_by.subscribe(),
        shared,
        connection,
        running: FuturesUnordered::new(),
        writing,
    };
    let ended = side.run(Frames::new(reading), stop).await;
    while side.running.next().await.is_some() {}
    ended
}

struct Side<W> {
    shared: Arc<Shared>,
    connection: u64,
    bell: watch::Receiver<u64>,
    running: FuturesUnordered<BoxFuture<'static, Vec<u8>>>,
    writing: W,
}

impl<W: AsyncWrite + Unpin> Side<W> {
    async fn run(
        &mut self,
        mut frames: Frames<impl tokio::io::AsyncRead + Unpin>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                Some(answer) = self.running.next() => self.writing.write_all(&answer).await?,
                next = frames.next(), if self.running.len() < AT_ONCE => match next? {
                    Some((call, content)) => self.begin(call, content)?,
                    None => return Ok(()),
                },
                Ok(()) = self.bell.changed() => {
                    let by = *self.bell.borrow_and_update();
                    if by != self.connection {
                        self.writing.write_all(&frame(BELL, &())).await?;
                    }
                },
                () = &mut stop => return Ok(()),
            }
        }
    }

    fn begin(&mut self, call: Call, content: Bytes) -> io::Result<()> {
        let request = read::<Request>(content)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a frame is no call"))?;
        let (shared, connection) = (Arc::clone(&self.shared), self.connection);
        self.running.push(Box::pin(async move { shared.answer(call, request, connection).await }));
        Ok(())
    }
}
