//! A consistent copy of a database that is being written to.
//!
//! SQLite's backup API copies the pages while one read transaction is open on the source: every page comes from the same commit,
//! however many follow, and the copy never starts over. Writers go on; only the write-ahead log cannot start over meanwhile. A copy
//! by `VACUUM INTO` is smaller, but writes every row and index entry again (see docs/adr/0026-backups-are-tar-archives.md).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::error::unavailable;
use super::file::connect_alone;
use super::lock::Lock;
use super::{FileOptions, private, read};
use crate::engine::Snapshot;
use crate::types::Error;

/// Pages of 4 KiB that are copied at once: the memory that a copy takes.
const STEP: std::ffi::c_int = 512;

/// Interval between log lines about the progress of a copy.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// Progress of a copy, in pages of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Copied pages.
    pub pages: u64,
    /// All pages.
    pub total: u64,
}

/// Logs the progress of a copy: not each step, but every few seconds, and its end.
pub struct CopyLog {
    start: Instant,
    logged: Instant,
}

impl CopyLog {
    /// For a copy that begins now.
    pub fn new(now: Instant) -> Self {
        Self { start: now, logged: now }
    }

    /// Logs it if it is time.
    pub fn note(&mut self, copied: Copied, now: Instant) {
        let Copied { pages, total } = copied;
        if pages == total {
            let seconds = (now - self.start).as_secs_f64();
            tracing::info!(pages, seconds, "the store has copied its database for a backup");
        } else if self.is_due(now) {
            tracing::info!(pages, total, "the store is copying its database for a backup");
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now - self.logged >= LOG_INTERVAL;
        if is_due {
            self.logged = now;
        }
        is_due
    }
}

/// One copy at a time, in a file beside the database.
#[derive(Default)]
pub struct Copies(Mutex<()>);

impl Copies {
    /// Copies the state that a reader sees into an unlinked file: it is gone with the last handle, whatever
    /// happens to the process. `report` is called at each step.
    pub fn copy(
        &self,
        source: &Connection,
        database: &Path,
        report: impl FnMut(Copied),
    ) -> Result<Snapshot, Error> {
        let _turn = match self.0.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Unavailable { reason: "another backup is being made".to_owned() });
            }
        };
        let scratch = Scratch::beside(database)?;
        copy(source, &scratch.0, report)
    }
}

/// Removes the copy that a process left behind which ended during it.
pub fn clean(database: &Path) {
    let _ = fs::remove_file(scratch_path(database));
}

/// Copies the database of a server that is not running; fails if one is. `report` is called at each step.
pub fn of_file(database: &Path, report: impl FnMut(Copied)) -> Result<Snapshot, Error> {
    let name = database.display().to_string();
    if !database.exists() {
        return Err(Error::Open { reason: format!("there is no database {name}") });
    }
    let _lock = Lock::take(database, &name)?;
    let source = connect_alone(&FileOptions::new(database))?;
    Copies::default().copy(&source, database, report)
}

fn scratch_path(database: &Path) -> PathBuf {
    private::beside(database, "-backup")
}

/// The file that a copy is written to; unlinked when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(database: &Path) -> Result<Self, Error> {
        let path = scratch_path(database);
        clean(database);
        private::open(&path).map_err(|error| unusable(&path, &error))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn copy(source: &Connection, to: &Path, mut report: impl FnMut(Copied)) -> Result<Snapshot, Error> {
    let snapshot = source.unchecked_transaction().map_err(unavailable)?;
    // The first read: from here on the transaction sees this commit.
    let clock = read::clock(&snapshot)?;
    let schema = snapshot.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(unavailable)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(to, flags).map_err(unavailable)?;
    // An incomplete copy is never read and never kept.
    target.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(())).map_err(unavailable)?;
    target.pragma_update(None, "synchronous", "OFF").map_err(unavailable)?;
    let backup = Backup::new(&snapshot, &mut target).map_err(unavailable)?;
    loop {
        let step = backup.step(STEP).map_err(unavailable)?;
        let progress = backup.progress();
        let [total, left] = [progress.pagecount, progress.remaining].map(|n| u64::try_from(n).unwrap_or(0));
        report(Copied { pages: total.saturating_sub(left), total });
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            other => {
                return Err(Error::Unavailable { reason: format!("the copy cannot continue ({other:?})") });
            }
        }
    }
    drop(backup);
    drop(target);
    let file = File::open(to).map_err(|error| unusable(to, &error))?;
    let bytes = file.metadata().map_err(|error| unusable(to, &error))?.len();
    Ok(Snapshot { file, bytes, clock, schema })
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::Unavailable { reason: format!("{} cannot be used: {error}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_a_copy_is_reported_up_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        drop(super::super::Sqlite::open(&FileOptions::new(&path)).unwrap());
        let database = Connection::open(&path).unwrap();
        database.execute_batch("CREATE TABLE filling (bytes BLOB)").unwrap();
        database.execute("INSERT INTO filling VALUES (zeroblob(?1))", [2000 * 4096]).unwrap();
        drop(database);
        let mut reports = Vec::new();
        of_file(&path, |copied| reports.push(copied)).unwrap();
        let total = reports[0].total;
        assert!(total > 2000 && reports.iter().all(|report| report.total == total), "{reports:?}");
        assert!(reports.is_sorted_by(|a, b| a.pages < b.pages), "{reports:?}");
        assert_eq!(reports[0].pages, STEP as u64);
        assert_eq!(reports.last().unwrap().pages, total);
    }

    #[test]
    fn a_long_copy_is_logged_every_few_seconds() {
        let start = Instant::now();
        let mut log = CopyLog::new(start);
        let due = [0, 4, 5, 6, 9, 10, 30].map(|second| log.is_due(start + Duration::from_secs(second)));
        assert_eq!(due, [false, false, true, false, false, true, true]);
    }
}
