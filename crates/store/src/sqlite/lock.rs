//! The lock file beside the database: it keeps other processes out, and is used to find out why the disk
//! refuses writes.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Seek, Write};
use std::path::Path;

use super::private;
use crate::types::Error;

/// A lock on a database. It ends with this value, or with the process.
pub struct Lock {
    file: File,
}

/// Whether a process has the database open at the moment.
pub fn is_in_use(path: &Path) -> bool {
    let file = File::options().write(true).open(private::beside(path, ".lock"));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

impl Lock {
    /// Locks the database at `path`, which messages call `name`. The lock is on a file beside it, because
    /// SQLite has its own locks on the database itself.
    ///
    /// # Errors
    /// When another process has it, or the folder is missing or not writable.
    pub fn take(path: &Path, name: &str) -> Result<Self, Error> {
        let beside = private::beside(path, ".lock");
        let file = private::open(&beside).map_err(|error| Error::Open {
            reason: format!("{name} cannot be used: {error}; its folder has to exist and to be writable"),
        })?;
        private::restrict(&beside);
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(Error::Open {
                reason: format!("{name} is in use by another server: stop that one, or choose another file"),
            }),
            Err(TryLockError::Error(error)) => Err(Error::Open {
                reason: format!("{name} cannot be locked: {error}; use a local file system"),
            }),
        }
    }

    /// After a failed write: adds the operating system's error for a write of one byte, where SQLite only
    /// reports that it failed.
    pub(super) fn explain(&self, error: Error) -> Error {
        let Error::Unavailable { .. } = error else { return error };
        let reason = match self.probe() {
            Ok(()) => return error,
            Err(refusal) if refusal.kind() == ErrorKind::StorageFull => "the disk is full".to_owned(),
            Err(refusal) => format!("the disk takes no writes: {refusal}"),
        };
        Error::Unavailable { reason }
    }

    fn probe(&self) -> io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(b"\n")
    }
}
