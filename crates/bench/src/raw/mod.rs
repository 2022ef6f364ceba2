//! The machine's own limits: the same work directly on the database, the socket or the scheduler.

pub mod postgres;
pub mod sqlite;
pub mod tls;
pub mod wake;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;

pub use self::postgres::RawPostgres;
pub use self::sqlite::RawSqlite;
use crate::stats::Latencies;

/// A table of a number and a value in a database, and nothing else.
#[derive(Clone)]
pub enum Raw {
    /// SQLite, on a file or in memory.
    Sqlite(Arc<Mutex<RawSqlite>>),
    /// PostgreSQL.
    Postgres(Arc<RawPostgres>),
}

impl Raw {
    /// Commits of one row, one at a time.
    pub async fn commits(&self, value: usize, stretch: Duration) -> Result<Latencies> {
        match self {
            Self::Sqlite(raw) => on_thread(raw, move |raw| raw.commits(value, stretch)).await,
            Self::Postgres(raw) => raw.commits(value, stretch).await,
        }
    }

    /// Rows per second in commits of this number of rows.
    pub async fn batches(&self, rows: usize, value: usize, stretch: Duration) -> Result<f64> {
        match self {
            Self::Sqlite(raw) => on_thread(raw, move |raw| raw.batches(rows, value, stretch)).await,
            Self::Postgres(raw) => raw.batches(rows, value, stretch).await,
        }
    }

    /// Fills an empty table with this number of rows.
    pub async fn fill(&self, rows: usize, value: usize) -> Result<()> {
        match self {
            Self::Sqlite(raw) => on_thread(raw, move |raw| raw.fill(rows, value)).await,
            Self::Postgres(raw) => raw.fill(rows, value).await,
        }
    }

    /// Reads this number of rows in order, each value into its own buffer; returns the bytes.
    pub async fn read(&self, rows: usize) -> Result<usize> {
        match self {
            Self::Sqlite(raw) => on_thread(raw, move |raw| raw.read(rows)).await,
            Self::Postgres(raw) => raw.read(rows).await,
        }
    }

    /// Looks up single rows by number.
    pub async fn look_ups(&self, count: usize) -> Result<Latencies> {
        match self {
            Self::Sqlite(raw) => on_thread(raw, move |raw| raw.look_ups(count)).await,
            Self::Postgres(raw) => raw.look_ups(count).await,
        }
    }
}

async fn on_thread<T: Send + 'static>(
    raw: &Arc<Mutex<RawSqlite>>,
    work: impl FnOnce(&mut RawSqlite) -> Result<T> + Send + 'static,
) -> Result<T> {
    let raw = Arc::clone(raw);
    tokio::task::spawn_blocking(move || work(&mut raw.lock().unwrap_or_else(PoisonError::into_inner))).await?
}
