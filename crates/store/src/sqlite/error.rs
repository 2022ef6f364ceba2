//! SQLite's errors as the store's.

use rusqlite::ErrorCode;

use crate::types::Error;

/// A failure of the database as callers see it: damaged, or unavailable for a reason that an operator can act on.
pub fn unavailable(error: rusqlite::Error) -> Error {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
        Some(ErrorCode::ReadOnly) => "the database file is read-only".to_owned(),
        Some(ErrorCode::SystemIoFailure) => format!("reading or writing the database file failed ({error})"),
        Some(ErrorCode::CannotOpen) => format!("the database file cannot be opened ({error})"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return Error::Corrupt { reason: error.to_string() };
        }
        _ => error.to_string(),
    };
    Error::Unavailable { reason }
}

/// An error of opening, with the name of the database in front.
pub fn open_failed(name: &str, error: &Error) -> Error {
    match error {
        Error::Open { .. } => error.clone(),
        Error::Corrupt { reason } => Error::Open {
            reason: format!("{name} is no readable database: {reason}; restore it from a backup"),
        },
        Error::Unavailable { reason } => Error::Open {
            reason: format!("{name} cannot be used: {reason}; check the folder's rights and free space"),
        },
        other => Error::Open { reason: format!("{name}: {other}") },
    }
}

/// A row that cannot be read back.
pub fn corrupt(reason: impl Into<String>) -> Error {
    Error::Corrupt { reason: reason.into() }
}

/// After [`crate::Engine::close`].
pub fn closed() -> Error {
    Error::Unavailable { reason: "the store is closed".to_owned() }
}
