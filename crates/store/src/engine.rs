//! The interface of a database to the store: methods in the store's own terms, no SQL.
//!
//! Every read sees one committed state (a snapshot), and checks the compaction mark in that same state.
//! Revisions above the compaction mark are consecutive: each of them has its change. Below the mark there are
//! gaps, where compaction removed changes and where [`Engine::advance`] skipped revisions.

use std::fs::File;
use std::time::Duration;

use async_trait::async_trait;
use model::{ObjectKey, Resource, Revision};
use tasks::TaskFailure;

use crate::types::{Change, ClockState, Error, ListQuery, Page, Stored, Write, Written};

/// The writes and requirements of one caller: all of them happen, or none.
pub type Transaction = Vec<Write>;

/// A database that holds the log and the heads.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The clock as it is now.
    async fn clock(&self) -> Result<ClockState, Error>;

    /// One object, as of now or as of an older revision. [`Error::Expired`] and [`Error::Future`] if `at` is
    /// outside of the kept history.
    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error>;

    /// A page of objects in key order; see [`ListQuery`] and [`Page`]. `at` is checked as in [`Engine::get`].
    async fn list(&self, query: &ListQuery) -> Result<Page, Error>;

    /// Commits a batch at once, in order, as [`crate::plan::plan`] decides. The outer error is a failure of
    /// the database: nothing was committed, or, for [`Error::OutcomeUnknown`], that is not known. A
    /// transaction whose preconditions do not hold fails alone, in `outcomes`.
    async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error>;

    /// Changes after a cursor, in revision order, of one resource or of all. [`Error::Expired`] where `after` is below the mark.
    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error>;

    /// Waits until another server may have committed something since the last call returned. It may ring
    /// without reason, and has to ring within a bounded time after a commit that it missed. Cancel safe. An
    /// engine without other servers never rings.
    async fn bell(&self);

    /// Number of times that this engine found its database to have lost a part of its history, or to be
    /// advanced: all watchers have to list again. It rings the bell each time.
    fn epoch(&self) -> u64;

    /// The newest revision that was committed at least `age` ago; [`Revision::ZERO`] if there is none.
    async fn older_than(&self, age: Duration) -> Result<Revision, Error>;

    /// The bytes of values and attributes that only readers of older revisions can see, and that compaction has not removed yet.
    /// Counted with each commit and each sweep, never measured.
    async fn history_bytes(&self) -> Result<u64, Error>;

    /// One step of compaction, in one small transaction: raises the mark to `through` if it is below, then
    /// removes the versions that no reader at or above the mark can see, for at most `limit` revisions. Of
    /// several servers one sweeps at a time. [`Error::Future`] if `through` is ahead of the clock.
    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error>;

    /// Advances the clock to `to`, or by one revision if it is there already, and moves the compaction mark
    /// to it, in one transaction. Every revision before it expires, for reads and for watches of all servers,
    /// and none of them is assigned again. A restored or promoted database needs it, see [`beyond`]; the
    /// objects themselves stay as they are.
    async fn advance(&self, to: Revision) -> Result<ClockState, Error>;

    /// Copies one committed state into a file of its own, while writers go on; `None` if the database has
    /// backups of its own.
    async fn backup(&self) -> Result<Option<Snapshot>, Error> {
        Ok(None)
    }

    /// Resolves when a task or thread of the engine has ended early; never if it has none.
    async fn failed(&self) -> TaskFailure {
        std::future::pending().await
    }

    /// Releases files, locks, threads and connections. Afterwards every call returns [`Error::Unavailable`].
    async fn close(&self);
}

/// Revisions that a database skips when it lost a part of its history.
///
/// The number of lost commits is unknown: a server that is disconnected may have seen more of them than the
/// one that finds the loss. At 10,000 commits per second this is more than a day of them, and 64-bit
/// revisions last for nine billion losses. It is the number that etcd's documentation gives for `etcdutl
/// snapshot restore --bump-revision`.
pub const STRIDE: u64 = 1_000_000_000;

/// A revision that no client has seen of a database whose greatest known revision is `seen`; for [`Engine::advance`].
pub fn beyond(seen: Revision) -> Revision {
    Revision(seen.0.saturating_add(STRIDE))
}

/// A copy of a database at one revision.
#[derive(Debug)]
pub struct Snapshot {
    /// The copy, positioned at its start. The file is unlinked: it is gone when this is dropped.
    pub file: File,
    /// The size of the copy.
    pub bytes: u64,
    /// The clock of the copy.
    pub clock: ClockState,
    /// The version of the tables in the copy.
    pub schema: u32,
}

/// Result of a committed batch.
#[derive(Debug)]
pub struct Committed {
    /// One outcome per transaction, in order: one [`Written`] per write, in order, none for a requirement, or
    /// the error that refused it.
    pub outcomes: Vec<Result<Vec<Written>, Error>>,
    /// The changes appended to the log, in revision order, without a gap.
    pub changes: Vec<Change>,
}

/// Limits of one read of the log.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// At most this many changes.
    pub changes: usize,
    /// No further change once the values take this many bytes; at least one change is returned in any case.
    pub bytes: usize,
}

/// A piece of the log.
#[derive(Debug)]
pub struct Changes {
    /// The changes, in revision order.
    pub changes: Vec<Change>,
    /// All changes (of the resource) up to here are in the piece: the revision of the last one if it was cut
    /// short, else the clock's.
    pub through: Revision,
}

/// Result of one step of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Everything up to the mark is swept.
    Done,
    /// There is more to sweep: take another step.
    More,
    /// Another server is sweeping and will do the rest. The mark is raised all the same.
    Busy,
}
