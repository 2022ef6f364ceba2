//! The server side: the process that has the database.

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
use super::wire::Wire;
use crate::Sqlite;
use crate::engine::{Committed, Engine, Transaction};
use crate::history::decide::ObservedHistory;
use crate::types::{ClockState, Error};

/// Concurrent calls of one connection; further ones wait on the connection.
const AT_ONCE: usize = 1024;

/// The count of a connection that has never checked the history.
const NEVER: u64 = u64::MAX;

/// A database that several connections share.
pub struct Shared {
    engine: Arc<Sqlite>,
    /// The number of commits so far, of all connections.
    commits: watch::Sender<u64>,
}

/// Notifies one connection of the commits of the others.
///
/// It counts: a commit of this connection raises both numbers, one of another connection only the total. In
/// whatever order two of them are announced, the difference is the number of commits that the client has not
/// been told of.
struct CommitFeed {
    commits: watch::Receiver<u64>,
    peer: Arc<Peer>,
}

/// The client's knowledge of the database.
struct Peer {
    /// Commits that it made itself, or was notified of.
    commits: AtomicU64,
    /// Number of advances of the clock when it last checked the history.
    advances: AtomicU64,
}

impl CommitFeed {
    /// Waits for commits of other connections, and counts them as announced. Cancel safe.
    async fn hears(&mut self) {
        loop {
            let commits = *self.commits.borrow_and_update();
            if self.peer.commits.fetch_max(commits, Ordering::Relaxed) < commits {
                return;
            }
            if self.commits.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

impl Shared {
    /// Shares an engine that has no other writers.
    pub fn new(engine: Arc<Sqlite>) -> Self {
        Self { engine, commits: watch::Sender::new(0) }
    }

    /// The notifications of a new connection.
    fn listen(&self) -> CommitFeed {
        let commits = self.commits.subscribe();
        let known = AtomicU64::new(*commits.borrow());
        CommitFeed { commits, peer: Arc::new(Peer { commits: known, advances: AtomicU64::new(NEVER) }) }
    }

    /// Resolves when a task or thread of the engine has ended early.
    pub async fn failed(&self) -> TaskFailure {
        self.engine.failed().await
    }

    /// Closes the engine; later calls on any connection answer that it is closed.
    pub async fn close(&self) {
        self.engine.close().await;
    }

    /// Commits for a connection, unless the clock was advanced and its client does not know of it.
    async fn commit(&self, batch: Vec<Transaction>, peer: &Peer) -> Option<Result<Committed, Error>> {
        let committed = self.engine.commit_after(peer.advances.load(Ordering::SeqCst), batch).await;
        self.announce(&committed, peer);
        committed.transpose()
    }

    fn announce(&self, committed: &Result<Option<Committed>, Error>, peer: &Peer) {
        match committed {
            Ok(Some(committed)) if !committed.changes.is_empty() => {
                peer.commits.fetch_add(1, Ordering::Relaxed);
                self.ring();
            }
            // It may have happened, and no connection gets its changes.
            Err(Error::OutcomeUnknown { .. }) => self.ring(),
            Ok(_) | Err(_) => {}
        }
    }

    fn ring(&self) {
        self.commits.send_modify(|commits| *commits += 1);
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        let clock = self.engine.advance(to).await?;
        // The connection that asked for it does not know of it either: all of them have to check.
        self.ring();
        Ok(clock)
    }

    async fn advance_from(
        &self,
        incarnation: String,
        to: Revision,
    ) -> Result<Option<ObservedHistory>, Error> {
        let found = self.engine.advance_from(incarnation, to).await?;
        if found.is_some() {
            self.ring();
        }
        Ok(found)
    }

    /// The history, for a connection that gets answers from then on.
    async fn history(&self, record: Option<Revision>, peer: &Peer) -> Result<ObservedHistory, Error> {
        let (advances, found) = self.engine.history(record).await?;
        peer.advances.store(advances, Ordering::SeqCst);
        Ok(found)
    }

    /// The answer to a read, unless the clock was advanced before or meanwhile and the client does not know
    /// of it.
    fn known<T: Wire>(&self, call: Call, peer: &Peer, read: Result<T, Error>) -> Vec<u8> {
        let is_known = peer.advances.load(Ordering::SeqCst) == self.engine.advances();
        frame(call, &is_known.then_some(read))
    }

    async fn answer(&self, call: Call, request: Request, peer: &Peer) -> Vec<u8> {
        match request {
            Request::Clock => self.known(call, peer, self.engine.clock().await),
            Request::Get { key, at } => self.known(call, peer, self.engine.get(&key, at).await),
            Request::List(query) => self.known(call, peer, self.engine.list(&query).await),
            Request::Commit(batch) => frame(call, &self.commit(batch, peer).await),
            Request::Changes { of, after, bound } => {
                self.known(call, peer, self.engine.changes(of.as_ref(), after, bound).await)
            }
            Request::OlderThan(age) => self.known(call, peer, self.engine.older_than(age).await),
            Request::Compact { through, limit } => {
                self.known(call, peer, self.engine.compact(through, limit).await)
            }
            Request::HistoryBytes => self.known(call, peer, self.engine.history_bytes().await),
            Request::Advance(to) => frame(call, &Some(self.advance(to).await)),
            Request::History(record) => frame(call, &Some(self.history(record, peer).await)),
            Request::AdvanceFrom { incarnation, to } => {
                frame(call, &Some(self.advance_from(incarnation, to).await))
            }
        }
    }
}

/// Answers the calls of one connection until the client disconnects or `stop` is ready. Commits that have
/// begun are finished in either case: other connections have to be notified of them.
///
/// # Errors
/// When the connection breaks, or the client speaks another protocol.
pub async fn serve(
    stream: impl Stream,
    shared: Arc<Shared>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (reading, writing) = tokio::io::split(stream);
    let mut side = Side { feed: shared.listen(), shared, running: FuturesUnordered::new(), writing };
    let ended = side.run(Frames::new(reading), stop).await;
    while side.running.next().await.is_some() {}
    ended
}

struct Side<W> {
    shared: Arc<Shared>,
    feed: CommitFeed,
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
                () = self.feed.hears() => self.writing.write_all(&frame(BELL, &())).await?,
                () = &mut stop => return Ok(()),
            }
        }
    }

    fn begin(&mut self, call: Call, content: Bytes) -> io::Result<()> {
        let request = read::<Request>(content)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a frame is no call"))?;
        let (shared, peer) = (Arc::clone(&self.shared), Arc::clone(&self.feed.peer));
        self.running.push(Box::pin(async move { shared.answer(call, request, &peer).await }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Write;
    use crate::conformance::kit::object;

    fn one(write: Write) -> Vec<Transaction> {
        vec![vec![write]]
    }

    #[tokio::test]
    async fn a_commit_of_another_connection_is_announced_in_any_order() {
        let shared = Shared::new(Arc::new(Sqlite::in_memory().unwrap()));
        let (mut a, mut b) = (shared.listen(), shared.listen());
        for feed in [&a, &b] {
            shared.history(None, &feed.peer).await.unwrap();
        }
        // B's write is committed first and announced last.
        let first = shared.engine.commit_after(0, one(object("ns/slow").create())).await;
        shared.commit(one(object("ns/fast").create()), &a.peer).await.unwrap().unwrap();
        shared.announce(&first, &b.peer);
        assert!(futures::poll!(Box::pin(b.hears())).is_ready());
        assert!(futures::poll!(Box::pin(a.hears())).is_ready());
        assert!(futures::poll!(Box::pin(a.hears())).is_pending(), "nothing is told twice");
        assert!(futures::poll!(Box::pin(b.hears())).is_pending(), "nothing is told twice");
        shared.commit(one(object("ns/own").create()), &a.peer).await.unwrap().unwrap();
        assert!(futures::poll!(Box::pin(a.hears())).is_pending(), "one's own commit is no news");
        assert!(futures::poll!(Box::pin(b.hears())).is_ready());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_history_never_counts_an_advance_that_it_does_not_include() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let options = crate::FileOptions::new(folder.path().join("a.db"));
            let engine = Arc::new(Sqlite::open(&options).unwrap());
            let (_, before) = engine.history(None).await.unwrap();
            let advancing = Arc::clone(&engine);
            let from = before.incarnation.clone();
            let mut advance = tokio::task::JoinSet::new();
            advance.spawn(async move { advancing.advance_from(from, Revision(100)).await });
            let advanced = loop {
                if let Some(advanced) = advance.try_join_next() {
                    break advanced;
                }
                let (advances, found) = engine.history(None).await.unwrap();
                assert_eq!(advances > 0, found.incarnation != before.incarnation);
            };
            advanced.unwrap().unwrap().expect("the database is at that incarnation");
            engine.close().await;
        }
    }

    #[tokio::test]
    async fn a_connection_gets_no_answer_of_a_history_that_its_other_side_does_not_know() {
        let shared = Shared::new(Arc::new(Sqlite::in_memory().unwrap()));
        let (a, b) = (shared.listen(), shared.listen());
        let is_answered = async |feed: &CommitFeed, request: Request| {
            let answer = shared.answer(7, request, &feed.peer).await;
            let mut frames = Frames::new(&answer[..]);
            let (_, content) = frames.next().await.unwrap().unwrap();
            content[0] == 1
        };
        let commit = |name: &str| Request::Commit(one(object(name).create()));
        assert!(!is_answered(&a, Request::Clock).await, "nobody has looked at the history");
        assert!(!is_answered(&a, commit("ns/early")).await);
        assert!(
            is_answered(&a, Request::History(None)).await && is_answered(&b, Request::History(None)).await
        );
        assert!(is_answered(&a, Request::Clock).await && is_answered(&b, commit("ns/b")).await);
        assert!(is_answered(&a, Request::Advance(Revision(100))).await);
        for feed in [&a, &b] {
            assert!(!is_answered(feed, Request::Clock).await && !is_answered(feed, commit("ns/late")).await);
        }
        assert!(is_answered(&b, Request::History(None)).await);
        assert!(is_answered(&b, Request::Clock).await && !is_answered(&a, Request::Clock).await);
        assert_eq!(shared.engine.clock().await.unwrap().current, Revision(100), "nothing was committed");
    }
}
