//! The side that has the database.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use model::Revision;
use tasks::TaskFailure;
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
    /// The number of commits so far, of all connections.
    commits: watch::Sender<u64>,
}

/// Tells one connection of the commits of the others.
///
/// It counts: a commit of this connection raises both numbers, one of another connection only the number of all. In whatever order
/// two of them are announced, the difference is what this side has not been told of.
struct Ear {
    commits: watch::Receiver<u64>,
    /// Commits that this side made itself, or was told of.
    known: Arc<AtomicU64>,
}

impl Ear {
    /// Waits for commits of other connections, and counts them as told. Cancel safe.
    async fn hears(&mut self) {
        loop {
            let commits = *self.commits.borrow_and_update();
            if self.known.fetch_max(commits, Ordering::Relaxed) < commits {
                return;
            }
            if self.commits.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

impl Shared {
    /// Shares an engine that nobody else commits to.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, commits: watch::Sender::new(0) }
    }

    /// The ear of a new connection.
    fn listen(&self) -> Ear {
        let commits = self.commits.subscribe();
        let known = Arc::new(AtomicU64::new(*commits.borrow()));
        Ear { commits, known }
    }

    /// Resolves when a task or thread of the engine has ended early.
    pub async fn failed(&self) -> TaskFailure {
        self.engine.failed().await
    }

    /// Ends the engine; connections answer that it is closed from here on.
    pub async fn close(&self) {
        self.engine.close().await;
    }

    /// Commits for the connection whose [`Ear`] knows of these commits.
    async fn commit(&self, batch: Vec<Transaction>, known: &AtomicU64) -> Result<Committed, Error> {
        let committed = self.engine.commit(batch).await;
        match &committed {
            Ok(committed) if !committed.changes.is_empty() => {
                known.fetch_add(1, Ordering::Relaxed);
                self.commits.send_modify(|commits| *commits += 1);
            }
            // It may have happened, and nobody gets its changes.
            Err(Error::OutcomeUnknown { .. }) => self.commits.send_modify(|commits| *commits += 1),
            Ok(_) | Err(_) => {}
        }
        committed
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        let clock = self.engine.advance(to).await?;
        // The connection that asked for it does not know of it either: all of them have to look.
        self.commits.send_modify(|commits| *commits += 1);
        Ok(clock)
    }

    async fn answer(&self, call: Call, request: Request, known: &AtomicU64) -> Vec<u8> {
        match request {
            Request::Clock => frame(call, &self.engine.clock().await),
            Request::Get { key, at } => frame(call, &self.engine.get(&key, at).await),
            Request::List(query) => frame(call, &self.engine.list(&query).await),
            Request::Commit(batch) => frame(call, &self.commit(batch, known).await),
            Request::Changes { of, after, bound } => {
                frame(call, &self.engine.changes(of.as_ref(), after, bound).await)
            }
            Request::OlderThan(age) => frame(call, &self.engine.older_than(age).await),
            Request::Compact { through, limit } => frame(call, &self.engine.compact(through, limit).await),
            Request::HistoryBytes => frame(call, &self.engine.history_bytes().await),
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
    let mut side = Side { ear: shared.listen(), shared, running: FuturesUnordered::new(), writing };
    let ended = side.run(Frames::new(reading), stop).await;
    while side.running.next().await.is_some() {}
    ended
}

struct Side<W> {
    shared: Arc<Shared>,
    ear: Ear,
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
                () = self.ear.hears() => self.writing.write_all(&frame(BELL, &())).await?,
                () = &mut stop => return Ok(()),
            }
        }
    }

    fn begin(&mut self, call: Call, content: Bytes) -> io::Result<()> {
        let request = read::<Request>(content)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a frame is no call"))?;
        let (shared, known) = (Arc::clone(&self.shared), Arc::clone(&self.ear.known));
        self.running.push(Box::pin(async move { shared.answer(call, request, &known).await }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use model::{ObjectKey, Resource};
    use tokio::sync::Notify;

    use super::*;
    use crate::conformance::kit::object;
    use crate::engine::{Bound, Changes, Sweep};
    use crate::types::{ListQuery, Page, Stored};
    use crate::{Sqlite, Write};

    /// A database that takes its time to say that it has committed what is named `slow`.
    struct Slow {
        database: Sqlite,
        go_on: Notify,
    }

    #[async_trait]
    impl Engine for Slow {
        async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error> {
            let is_slow = batch.iter().flatten().any(|write| write.key().name == "slow");
            let committed = self.database.commit(batch).await;
            if is_slow {
                self.go_on.notified().await;
            }
            committed
        }

        async fn clock(&self) -> Result<ClockState, Error> {
            self.database.clock().await
        }

        async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
            self.database.get(key, at).await
        }

        async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
            self.database.list(query).await
        }

        async fn changes(
            &self,
            of: Option<&Resource>,
            after: Revision,
            bound: Bound,
        ) -> Result<Changes, Error> {
            self.database.changes(of, after, bound).await
        }

        async fn bell(&self) {
            self.database.bell().await;
        }

        async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
            self.database.older_than(age).await
        }

        async fn history_bytes(&self) -> Result<u64, Error> {
            self.database.history_bytes().await
        }

        async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
            self.database.compact(through, limit).await
        }

        async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
            self.database.advance(to).await
        }

        async fn close(&self) {}
    }

    fn one(write: Write) -> Vec<Transaction> {
        vec![vec![write]]
    }

    #[tokio::test]
    async fn a_commit_of_another_connection_is_heard_whoever_is_announced_last() {
        let slow = Arc::new(Slow { database: Sqlite::in_memory().unwrap(), go_on: Notify::new() });
        let shared = Shared::new(slow.clone());
        let (mut a, mut b) = (shared.listen(), shared.listen());
        let known = Arc::clone(&b.known);
        let mut first = Box::pin(shared.commit(one(object("ns/slow").create()), &known));
        assert!(futures::poll!(first.as_mut()).is_pending(), "committed, and not announced yet");
        shared.commit(one(object("ns/fast").create()), &a.known).await.unwrap();
        slow.go_on.notify_one();
        first.await.unwrap();
        // Each has missed the commit of the other, though the last announcement was that of B.
        assert!(futures::poll!(Box::pin(b.hears())).is_ready());
        assert!(futures::poll!(Box::pin(a.hears())).is_ready());
        assert!(futures::poll!(Box::pin(a.hears())).is_pending(), "nothing is told twice");
        assert!(futures::poll!(Box::pin(b.hears())).is_pending(), "nothing is told twice");
        shared.commit(one(object("ns/own").create()), &a.known).await.unwrap();
        assert!(futures::poll!(Box::pin(a.hears())).is_pending(), "one's own commit is no news");
        assert!(futures::poll!(Box::pin(b.hears())).is_ready());
    }
}
