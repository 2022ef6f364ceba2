//! The embedded engine: one SQLite file with one writer, or a database in memory.

mod backend;
mod backup;
mod compact;
mod error;
mod file;
mod list;
mod lock;
mod private;
mod read;
mod schema;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use model::{ObjectKey, Resource, Revision};
use rusqlite::Connection;
use tasks::TaskFailure;
use tokio::sync::Notify;

use self::backend::{Backend, Memory};
pub use self::backup::{Copied, of_file as backup_of_file};
use self::file::FileDatabase;
pub(crate) use self::file::connect_to_check;
pub use self::lock::{Lock, is_in_use};
pub use self::private::BESIDE;
use crate::engine::{Bound, Changes, Committed, Engine, Snapshot, Sweep, Transaction};
use crate::history::decide::ObservedHistory;
use crate::types::{ClockState, Error, ListQuery, Page, Stored};

/// Options of a database file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileOptions {
    /// Its path. The file is created if it is missing; its folder has to exist.
    pub path: PathBuf,
    /// Faults that an acknowledged write survives.
    pub durability: Durability,
    /// Bytes of the file that readers map into memory instead of copying pages; 0 for none.
    pub mmap_bytes: u64,
    /// Number of concurrent lists and log reads.
    pub readers: usize,
    /// The write-ahead log is folded back into the file, beside the writer, each time it has grown by this
    /// many pages of 4 KiB. At eight times as many the writer waits until it starts over.
    pub checkpoint_pages: u32,
}

impl FileOptions {
    /// The defaults for a file.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            durability: Durability::Full,
            mmap_bytes: 0,
            readers: 4,
            checkpoint_pages: 4000,
        }
    }
}

/// Faults that an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process and the loss of power: each commit waits for the disk.
    Full,
    /// The end of the process; a loss of power may undo the last commits, never the database's consistency.
    Process,
}

/// An embedded database.
pub struct Sqlite {
    backend: Backend,
    /// Rings when the clock was advanced: no commit notified the store of it.
    advanced: Notify,
    epoch: AtomicU64,
    /// Number of advances of the clock that have begun. It is raised before the advanced clock can be read.
    advances: Arc<AtomicU64>,
}

impl Sqlite {
    /// Opens a file, for this process alone.
    pub fn open(options: &FileOptions) -> Result<Self, Error> {
        Ok(Self::on(Backend::File(FileDatabase::open(options)?)))
    }

    /// A new database in memory, gone when it is dropped.
    pub fn in_memory() -> Result<Self, Error> {
        Ok(Self::on(Backend::Memory(Memory::open()?)))
    }

    fn on(backend: Backend) -> Self {
        Self { backend, advanced: Notify::new(), epoch: AtomicU64::new(0), advances: Arc::default() }
    }

    /// Number of advances of the clock that have begun. A state that was read belongs to no later incarnation
    /// than the one of this count, if the count is the same afterwards.
    pub(crate) fn advances(&self) -> u64 {
        self.advances.load(Ordering::SeqCst)
    }

    /// The history as the database has it, with the change at a revision, and the number of advances that it includes. The writer
    /// reads both: a reader beside it could count an advance that has begun, and still see the history from before it.
    pub(crate) async fn history(&self, record: Option<Revision>) -> Result<(u64, ObservedHistory), Error> {
        let begun = Arc::clone(&self.advances);
        let look = move |connection: &mut Connection| {
            let found = read::history(connection, record)?;
            Ok((begun.load(Ordering::SeqCst), found))
        };
        self.backend.write(1, look).await
    }

    /// As [`Engine::commit`], unless the clock has been advanced more often: then nothing happens.
    pub(crate) async fn commit_after(
        &self,
        advances: u64,
        batch: Vec<Transaction>,
    ) -> Result<Option<Committed>, Error> {
        let (writes, begun) = (batch.iter().map(Vec::len).sum(), Arc::clone(&self.advances));
        let commit = move |connection: &mut Connection| match begun.load(Ordering::SeqCst) == advances {
            true => write::commit(connection, batch).map(Some),
            false => Ok(None),
        };
        self.backend.write(writes, commit).await
    }

    /// As [`Engine::advance`], but only from one incarnation: `None` if the database is at another one.
    pub(crate) async fn advance_from(
        &self,
        from: String,
        to: Revision,
    ) -> Result<Option<ObservedHistory>, Error> {
        let begun = Arc::clone(&self.advances);
        // There is one writer: no other statement comes between these.
        let advance = move |connection: &mut Connection| {
            if read::incarnation(connection)? != from {
                return Ok(None);
            }
            begun.fetch_add(1, Ordering::SeqCst);
            write::advance(connection, to)?;
            read::history(connection, None).map(Some)
        };
        let found = self.backend.write(1, advance).await?;
        if found.is_some() {
            self.was_advanced();
        }
        Ok(found)
    }

    fn was_advanced(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
        self.advanced.notify_one();
    }
}

#[async_trait]
impl Engine for Sqlite {
    async fn clock(&self) -> Result<ClockState, Error> {
        self.backend.look(read::clock)
    }

    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        // A look-up takes a few microseconds, less than handing it to another thread.
        self.backend.look(|connection| read::get(connection, key, at))
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        let query = query.clone();
        self.backend.scan(move |connection| list::list(connection, &query)).await
    }

    async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error> {
        let writes = batch.iter().map(Vec::len).sum();
        self.backend.write(writes, move |connection| write::commit(connection, batch)).await
    }

    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error> {
        let of = of.cloned();
        self.backend.scan(move |connection| read::changes(connection, of.as_ref(), after, bound)).await
    }

    async fn bell(&self) {
        // The file is locked and memory is private: there is no other server.
        self.advanced.notified().await;
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let at = write::now().saturating_sub(age);
        self.backend.scan(move |connection| read::committed_by(connection, at)).await
    }

    async fn history_bytes(&self) -> Result<u64, Error> {
        self.backend.look(compact::history_bytes)
    }

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        let weight = usize::try_from(limit).unwrap_or(usize::MAX);
        self.backend.write(weight, move |connection| compact::compact(connection, through, limit)).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        let begun = Arc::clone(&self.advances);
        let advance = move |connection: &mut Connection| {
            begun.fetch_add(1, Ordering::SeqCst);
            write::advance(connection, to)
        };
        let clock = self.backend.write(1, advance).await?;
        self.was_advanced();
        Ok(clock)
    }

    async fn backup(&self) -> Result<Option<Snapshot>, Error> {
        match &self.backend {
            Backend::File(file) => file.backup().await.map(Some),
            Backend::Memory(_) => Ok(None),
        }
    }

    async fn failed(&self) -> TaskFailure {
        self.backend.failed().await
    }

    async fn close(&self) {
        self.backend.close().await;
    }
}

#[cfg(test)]
#[cfg(feature = "conformance")]
mod tests;
