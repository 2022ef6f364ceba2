//! Execution of work on the database: in place, on a blocking thread, or on the writer.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tasks::TaskFailure;

use super::error::{closed, open_failed, unavailable};
use super::file::FileDatabase;
use super::schema;
use crate::types::Error;

/// Prepared statements that a connection caches: more than there are.
const STATEMENTS: usize = 64;

/// Makes a connection prepare each statement once.
///
/// SQLite would otherwise plan a statement anew for every set of bound values, in case statistics suggest
/// another plan: that costs more than most statements themselves, and there are no statistics.
pub fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

/// A batch of at most this many writes runs in place in memory: that is faster than handing it to another
/// thread.
const SMALL: usize = 32;

/// The two kinds of database.
pub enum Backend {
    File(FileDatabase),
    Memory(Memory),
}

impl Backend {
    /// Runs a look-up of a few microseconds, in place.
    pub fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Self::File(file) => file.look(work),
            Self::Memory(memory) => memory.with(|connection| work(connection)),
        }
    }

    /// Runs a read that may take milliseconds, off the async threads.
    pub async fn scan<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::File(file) => file.scan(work).await,
            Self::Memory(memory) => {
                let memory = memory.clone();
                blocking(move || memory.with(|connection| work(connection))).await
            }
        }
    }

    /// Runs a write of about `weight` rows.
    pub async fn write<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::File(file) => file.write(work).await,
            Self::Memory(memory) if weight <= SMALL => memory.with(work),
            Self::Memory(memory) => {
                let memory = memory.clone();
                blocking(move || memory.with(work)).await
            }
        }
    }

    /// Resolves when a thread of the database has ended early.
    pub async fn failed(&self) -> TaskFailure {
        match self {
            Self::File(file) => file.failed().await,
            Self::Memory(_) => std::future::pending().await,
        }
    }

    /// Closes the database.
    pub async fn close(&self) {
        match self {
            Self::File(file) => file.close().await,
            Self::Memory(memory) => memory.close(),
        }
    }
}

/// Runs blocking work on a blocking thread.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(closed()),
        },
    }
}

/// One connection to a database that lives in this process's memory.
#[derive(Clone)]
pub struct Memory {
    connection: Arc<Mutex<Option<Connection>>>,
}

impl Memory {
    /// A new, empty database.
    pub fn open() -> Result<Self, Error> {
        let failed = |error| open_failed("the database in memory", &unavailable(error));
        let mut connection = Connection::open_in_memory().map_err(failed)?;
        keep_statements(&connection).map_err(failed)?;
        // Nothing survives the process, so nothing needs to be undone after a crash.
        connection.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
        schema::migrate(&mut connection, "the database in memory")?;
        Ok(Self { connection: Arc::new(Mutex::new(Some(connection))) })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T, Error>) -> Result<T, Error> {
        // A panic in between leaves no half-done work: an open transaction is rolled back when it is dropped.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        work(connection.as_mut().ok_or_else(closed)?)
    }

    fn close(&self) {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
