//! SQLite without Orlop's schema.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::{Connection, params};

use crate::stats::Latencies;

/// Rare checkpoints, so that a commit does not include a share of one.
const CHECKPOINT_PAGES: u32 = 20_000;

/// A table of a number and a value.
pub struct RawSqlite {
    connection: Connection,
    next: i64,
}

impl RawSqlite {
    /// In a file; every commit waits for the disk.
    pub fn file(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        Self::new(connection)
    }

    /// In memory.
    pub fn memory() -> Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        Self::new(connection)
    }

    fn new(connection: Connection) -> Result<Self> {
        for table in ["written", "listed"] {
            connection.execute_batch(&format!(
                "CREATE TABLE {table} (id INTEGER PRIMARY KEY, value BLOB NOT NULL)"
            ))?;
        }
        Ok(Self { connection, next: 0 })
    }

    pub(super) fn commits(&mut self, value: usize, stretch: Duration) -> Result<Latencies> {
        let value = vec![b'a'; value];
        let mut insert = self.connection.prepare("INSERT INTO written (id, value) VALUES (?, ?)")?;
        let mut latencies = Latencies::default();
        let begin = Instant::now();
        while begin.elapsed() < stretch {
            self.next += 1;
            let started = Instant::now();
            insert.execute(params![self.next, value])?;
            latencies.push(started.elapsed());
        }
        Ok(latencies)
    }

    pub(super) fn batches(&mut self, rows: usize, value: usize, stretch: Duration) -> Result<f64> {
        let value = vec![b'a'; value];
        let begin = Instant::now();
        let mut written = 0;
        while begin.elapsed() < stretch {
            let transaction = self.connection.transaction()?;
            let mut insert = transaction.prepare_cached("INSERT INTO written (id, value) VALUES (?, ?)")?;
            for _ in 0..rows {
                self.next += 1;
                insert.execute(params![self.next, value])?;
            }
            drop(insert);
            transaction.commit()?;
            written += rows;
        }
        Ok(written as f64 / begin.elapsed().as_secs_f64())
    }

    pub(super) fn fill(&mut self, rows: usize, value: usize) -> Result<()> {
        let there: i64 = self.connection.query_row("SELECT count(*) FROM listed", [], |row| row.get(0))?;
        if there > 0 {
            return Ok(());
        }
        let value = vec![b'a'; value];
        let transaction = self.connection.transaction()?;
        let mut insert = transaction.prepare("INSERT INTO listed (id, value) VALUES (?, ?)")?;
        for id in 0..i64::try_from(rows)? {
            insert.execute(params![id, value])?;
        }
        drop(insert);
        Ok(transaction.commit()?)
    }

    pub(super) fn read(&mut self, rows: usize) -> Result<usize> {
        let mut select = self.connection.prepare("SELECT value FROM listed ORDER BY id LIMIT ?")?;
        let values = select.query_map([i64::try_from(rows)?], |row| row.get::<_, Vec<u8>>(0))?;
        let mut bytes = 0;
        for value in values {
            bytes += std::hint::black_box(value?).len();
        }
        Ok(bytes)
    }

    pub(super) fn look_ups(&mut self, count: usize) -> Result<Latencies> {
        let rows: i64 = self.connection.query_row("SELECT count(*) FROM listed", [], |row| row.get(0))?;
        let mut select = self.connection.prepare("SELECT value FROM listed WHERE id = ?")?;
        let mut latencies = Latencies::default();
        for turn in 0..i64::try_from(count)? {
            let started = Instant::now();
            // A large odd stride visits the table in no particular order.
            let id = turn.wrapping_mul(7_919) % rows.max(1);
            std::hint::black_box(select.query_row([id], |row| row.get::<_, Vec<u8>>(0))?);
            latencies.push(started.elapsed());
        }
        Ok(latencies)
    }
}
