//! The client side: an engine whose database is behind a connection.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use model::{ObjectKey, Resource, Revision};
use tasks::{TaskFailure, Tasks};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::Stream;
use super::link::{Link, Lost};
use super::message::Request;
use super::wire::Wire;
use crate::engine::{Bound, Changes, Committed, Engine, Sweep, Transaction};
use crate::history::decide::{ObservedHistory, Verdict, decide};
use crate::history::{History, doubtful};
use crate::types::{ClockState, Error, ListQuery, Page, Stored};

/// Makes a connection on which the server already speaks [`super::PROTOCOL`], or returns the reason why it
/// cannot.
pub type Connector = Arc<dyn Fn() -> BoxFuture<'static, Result<Box<dyn Stream>, String>> + Send + Sync>;

/// Pause before the next attempt to connect while there are no calls.
const RETRY: Duration = Duration::from_millis(100);

/// Time limit of a call, connecting included. The connection of a call that takes longer is ended: its server
/// is gone or stuck.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Attempts at a call that another connection, or a check of the history, may help.
const ATTEMPTS: usize = 3;

/// An engine in another process. A broken connection is made again by the next call.
pub struct Remote {
    connector: Connector,
    link: tokio::sync::Mutex<Slot>,
    /// Rings when another server committed, and after each connect, because a commit may have come in
    /// between.
    bell: Arc<Notify>,
    /// The history that this server has seen of the database.
    history: History,
    /// The tasks of the connection. They end with the engine at the latest.
    tasks: Tasks,
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
        let remote = Self {
            connector,
            link: tokio::sync::Mutex::new(Slot::Empty),
            bell: Arc::new(Notify::new()),
            history: History::new(),
            tasks: Tasks::default(),
        };
        remote.link().await?;
        Ok(remote)
    }

    /// The present connection, or a new one. The database behind it continues the history that this server
    /// knows, or all watches have been told to end.
    async fn link(&self) -> Result<Arc<Link>, Error> {
        let mut slot = self.link.lock().await;
        let link = match &*slot {
            Slot::Closed => return Err(unavailable("the store is closed")),
            Slot::Linked(link) if !link.is_ended() => Arc::clone(link),
            Slot::Linked(_) | Slot::Empty => {
                let stream = (self.connector)().await.map_err(unavailable)?;
                let link = Arc::new(Link::start(stream, Arc::clone(&self.bell), &self.tasks));
                *slot = Slot::Linked(Arc::clone(&link));
                link
            }
        };
        if !link.is_checked() {
            self.check(&link).await?;
            link.set_checked(true);
            self.bell.notify_one();
        }
        Ok(link)
    }

    /// Compares the history of the database with the known one, and advances the clock after a loss.
    async fn check(&self, link: &Link) -> Result<(), Error> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        loop {
            let since = self.history.now();
            let record = since.known.as_ref().and_then(|known| known.record.as_ref());
            let looking = Request::History(record.map(|record| record.revision));
            let found: ObservedHistory = required(link.call(&looking, deadline).await)?;
            match decide(since.known.as_ref(), &found) {
                Verdict::Same if self.history.goes_on(&since, &found) => return Ok(()),
                Verdict::Advanced if self.history.was_lost(&since, &found) => {
                    tracing::warn!(
                        clock = %found.clock.current,
                        "the clock of the database was advanced; ending all watches"
                    );
                    return Ok(());
                }
                Verdict::Lost { advance_to } => {
                    let from = found.incarnation.clone();
                    let advancing = Request::AdvanceFrom { incarnation: from, to: advance_to };
                    let advanced: Option<ObservedHistory> = required(link.call(&advancing, deadline).await)?;
                    if let Some(advanced) = advanced {
                        tracing::error!(
                            seen = %self.history.seen(), found = %found.clock.current, now = %advanced.clock.current,
                            "the database lost commits; advanced its clock, ending all watches"
                        );
                        self.history.was_lost(&since, &advanced);
                    }
                }
                // Another check was faster.
                Verdict::Same | Verdict::Advanced => {}
                Verdict::Former => return Err(doubtful()),
            }
        }
    }

    async fn once<T: Answer>(&self, request: &Request) -> Result<Result<T, Error>, Lost> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let link = match timeout_at(deadline, self.link()).await {
            Ok(Ok(link)) => link,
            Ok(Err(error)) => return Ok(Err(error)),
            Err(_) => return Ok(Err(unavailable("connecting to the database took too long"))),
        };
        let answer = link.call::<T>(request, deadline).await.inspect_err(|lost| {
            if *lost == Lost::Outdated {
                link.set_checked(false);
            }
        })?;
        if let Ok(Some(shown)) = answer.as_ref().map(Answer::shown) {
            self.history.saw(shown);
        }
        // In this order: the next connection is compared with everything that was seen before this one ended.
        if link.is_ended() { Err(Lost::Broken) } else { Ok(answer) }
    }

    /// Makes a call that may be repeated on another connection.
    async fn ask<T: Answer>(&self, request: Request) -> Result<T, Error> {
        let mut answer = self.once(&request).await;
        for _ in 1..ATTEMPTS {
            let Err(Lost::Unsent | Lost::Outdated | Lost::Broken) = answer else { break };
            answer = self.once(&request).await;
        }
        required(answer)
    }

    /// Makes a call that must not be repeated: once it was sent, its outcome is unknown.
    async fn tell<T: Answer>(&self, request: Request) -> Result<T, Error> {
        let mut answer = self.once(&request).await;
        for _ in 1..ATTEMPTS {
            let Err(Lost::Unsent | Lost::Outdated) = answer else { break };
            answer = self.once(&request).await;
        }
        answer.unwrap_or_else(|lost| match lost {
            Lost::Unsent | Lost::Outdated => Err(unavailable(lost.words())),
            Lost::Broken | Lost::Late => Err(Error::OutcomeUnknown { reason: lost.words().to_owned() }),
        })
    }
}

/// An answer that is required before a connection is used.
fn required<T>(answer: Result<Result<T, Error>, Lost>) -> Result<T, Error> {
    answer.unwrap_or_else(|lost| Err(unavailable(lost.words())))
}

/// An answer that may show a revision to clients.
trait Answer: Wire {
    /// The greatest revision in it.
    fn shown(&self) -> Option<Revision> {
        None
    }
}

impl Answer for u64 {}
impl Answer for Sweep {}

impl Answer for Revision {
    fn shown(&self) -> Option<Revision> {
        Some(*self)
    }
}

impl Answer for ClockState {
    fn shown(&self) -> Option<Revision> {
        Some(self.current)
    }
}

impl Answer for Option<Stored> {
    fn shown(&self) -> Option<Revision> {
        self.as_ref().map(|stored| stored.revision)
    }
}

impl Answer for Page {
    fn shown(&self) -> Option<Revision> {
        Some(self.revision)
    }
}

impl Answer for Changes {
    fn shown(&self) -> Option<Revision> {
        Some(self.through)
    }
}

impl Answer for Committed {
    fn shown(&self) -> Option<Revision> {
        // A write that changes nothing shows the revision of another write.
        self.outcomes.iter().flatten().flatten().map(|written| written.revision).max()
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
        let committed: Committed = self.tell(Request::Commit(batch)).await?;
        self.history.remember(&committed.changes);
        Ok(committed)
    }

    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error> {
        let piece: Changes = self.ask(Request::Changes { of: of.cloned(), after, bound }).await?;
        self.history.remember(&piece.changes);
        Ok(piece)
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

    fn epoch(&self) -> u64 {
        self.history.epoch()
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
        // Repeating it would advance the clock further.
        let clock = self.tell(Request::Advance(to)).await?;
        if let Ok(link) = self.link().await {
            link.set_checked(false);
            // If this check fails, the next one finds the change.
            let _ = self.link().await;
        }
        Ok(clock)
    }

    async fn failed(&self) -> TaskFailure {
        self.tasks.failed().await
    }

    async fn close(&self) {
        let slot = std::mem::replace(&mut *self.link.lock().await, Slot::Closed);
        if let Slot::Linked(link) = slot {
            link.end();
        }
        self.tasks.abort().await;
    }
}

fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::{AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::history::decide::Identity;
    use crate::remote::frame::{Frames, frame};
    use crate::remote::link::OUTGOING;

    /// A connection whose server is the test. It has sent its history.
    async fn link() -> (Remote, Arc<Link>, DuplexStream) {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let stream = Mutex::new(Some(Box::new(ours) as Box<dyn Stream>));
        let connector: Connector = Arc::new(move || {
            let stream = stream.lock().unwrap().take().ok_or("nobody listens any more".to_owned());
            Box::pin(async { stream })
        });
        let (remote, ()) = tokio::join!(Remote::open(connector), tell_history(&mut theirs));
        let remote = remote.unwrap();
        let link = remote.link().await.unwrap();
        (remote, link, theirs)
    }

    async fn tell_history(theirs: &mut DuplexStream) {
        let (call, _) = Frames::new(&mut *theirs).next().await.unwrap().unwrap();
        let (home, clock) =
            (Identity::default(), ClockState { current: Revision(1), compacted: Revision::ZERO });
        let found = ObservedHistory {
            identity: home,
            stamped: home,
            incarnation: "a".to_owned(),
            clock,
            record: None,
        };
        theirs.write_all(&frame(call, &Some(Ok::<_, Error>(found)))).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_gets_no_answer_ends_with_its_connection() {
        for is_commit in [false, true] {
            // The server never reads: the first frames fill the pipe, the rest wait to be sent.
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
            // The next call connects anew.
            assert_eq!(remote.clock().await, Err(unavailable("nobody listens any more")));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_leaves_nothing_behind() {
        let (remote, link, _silent) = link().await;
        for _ in 0..100 {
            assert!(tokio::time::timeout(Duration::from_millis(1), remote.clock()).await.is_err());
        }
        assert_eq!(link.waiting(), Some(0));
    }

    #[tokio::test]
    async fn a_commit_that_was_cut_off_has_an_unknown_outcome_and_one_that_was_never_sent_has_not() {
        let (remote, link, theirs) = link().await;
        let (commit, ()) = tokio::join!(remote.commit(vec![vec![]]), async {
            while link.waiting() != Some(1) {
                tokio::task::yield_now().await;
            }
            drop(theirs);
        });
        assert!(matches!(commit, Err(Error::OutcomeUnknown { .. })), "{commit:?}");
        let unsent = remote.commit(vec![vec![]]).await;
        assert!(matches!(unsent, Err(Error::Unavailable { .. })), "{unsent:?}");
    }
    #[tokio::test]
    async fn a_task_that_panics_is_reported_and_ends_the_calls_of_its_connection() {
        let names = ["the remote store reader", "the remote store writer"];
        for name in names {
            let (remote, link, _silent) = link().await;
            assert_eq!(remote.tasks.names(), names);
            let (commit, ()) = tokio::join!(remote.commit(vec![vec![]]), async {
                while link.waiting() != Some(1) {
                    tokio::task::yield_now().await;
                }
                assert!(remote.tasks.inject_fault(name));
            });
            assert!(matches!(commit, Err(Error::OutcomeUnknown { .. })), "{name}: {commit:?}");
            assert_eq!(remote.failed().await.task, name);
            assert!(link.is_ended());
        }
    }

    #[tokio::test]
    async fn a_remote_store_that_is_closed_has_not_failed() {
        let (remote, link, _silent) = link().await;
        remote.close().await;
        assert!(link.is_ended());
        assert!(futures::poll!(std::pin::pin!(remote.failed())).is_pending());
    }
}
