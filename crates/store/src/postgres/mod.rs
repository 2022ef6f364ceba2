//! The PostgreSQL engine: many servers on one database.
//!
//! Each server has one session that writes, one that listens for the commits of the others, and a few that
//! read. All of them are ordinary sessions with settings and prepared statements, so a pooler in between has
//! to pool sessions, not transactions. Everything is in the schema `orlop` of the database, which has to be
//! encoded in UTF-8. PostgreSQL 15 is the oldest that works.
//!
//! The address may have `sslmode` and `sslrootcert`, with libpq's meaning: without them the connection is
//! encrypted if the server can (`prefer`); `require` insists on it; `verify-full` with `sslrootcert=FILE`
//! also verifies the server's identity. `passfile` names a password file in libpq's format.

mod address;
mod bell;
pub(crate) mod check;
mod commit;
mod compact;
mod failure;
mod gets;
mod limits;
mod list;
mod locks;
mod look;
mod passfile;
mod read;
mod readers;
mod rows;
mod schema;
mod session;
mod terms;
mod tls;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{ObjectKey, Resource, Revision};
use tasks::{TaskFailure, Tasks};
use tokio::sync::Mutex;

use self::address::Address;
use self::commit::Writer;
use self::failure::closed;
use self::readers::Readers;
use self::session::Connector;
use crate::engine::{Bound, Changes, Committed, Engine, Sweep, Transaction};
use crate::history::doubtful;
use crate::types::{ClockState, Error, ListQuery, Page, Stored};

/// Options of a server's connection to its database.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// Number of sessions that read.
    pub readers: usize,
    /// Interval between reads of the clock, in case a notification was lost: the longest that a commit of
    /// another server can go unnoticed.
    pub poll: Duration,
    /// Whether to listen for notifications of commits. Otherwise the poll alone notices other servers'
    /// commits.
    pub listen: bool,
    /// The password file, in libpq's format, where the address names none.
    pub passfile: Option<PathBuf>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { readers: 4, poll: Duration::from_secs(1), listen: true, passfile: None }
    }
}

/// Security-relevant properties of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Whether the address itself has a password.
    pub has_password: bool,
    /// Hosts on other machines with which the connection may be unencrypted.
    pub unprotected_hosts: Vec<String>,
}

/// Inspects an address without connecting to it.
///
/// # Errors
/// When it cannot be parsed.
pub fn inspect(url: &str) -> Result<Inspection, Error> {
    let address = Address::parse(url)?;
    let (has_password, unprotected_hosts) = (address.has_password(), address.unprotected_hosts());
    Ok(Inspection { has_password, unprotected_hosts })
}

/// Attempts at a read that finds an older state than was seen.
const ATTEMPTS: usize = 2;

/// A PostgreSQL database.
pub struct Postgres {
    connector: Arc<Connector>,
    writer: Mutex<Writer>,
    readers: Readers,
    /// The sessions that read and the one that listens. They end with the engine at the latest.
    tasks: Tasks,
}

impl Postgres {
    /// Connects to a database, given as `postgres://user:password@host:port/database`, and sets it up if it is new.
    pub async fn open(url: &str, options: &PostgresOptions) -> Result<Self, Error> {
        let address = Address::parse(url)?.with_passfile(options.passfile.as_deref());
        let connector = Arc::new(Connector::new(address));
        let address = connector.address();
        let mut session = connector.connect("opens").await.map_err(|failure| failure.on_open(address))?;
        schema::migrate(&mut session, address).await?;
        drop(session);
        let tasks = Tasks::default();
        let readers = Readers::start(&connector, options.readers, &tasks);
        let opened = read::clock(&readers).await?.current;
        connector.history().saw(opened);
        connector.ring().saw(opened);
        let listening = bell::attend(Arc::clone(&connector), options.listen, options.poll);
        tasks.start("the PostgreSQL listener", listening);
        let writer = Mutex::new(Writer::new(Arc::clone(&connector)));
        Ok(Self { connector, writer, readers, tasks })
    }

    /// A read as of now. A state older than one seen before belongs to a database that lost its last commits:
    /// it is read again, by a session that has been checked.
    async fn newest<T, F: Future<Output = Result<T, Error>>>(
        &self,
        read: impl Fn() -> F,
        revision: impl Fn(&T) -> Revision,
    ) -> Result<T, Error> {
        let history = self.connector.history();
        for _ in 0..ATTEMPTS {
            let (seen, generation) = (history.seen(), history.generation());
            let found = read().await?;
            if revision(&found) >= seen {
                history.saw(revision(&found));
                return Ok(found);
            }
            history.doubt(generation);
        }
        Err(doubtful())
    }
}

#[async_trait]
impl Engine for Postgres {
    async fn clock(&self) -> Result<ClockState, Error> {
        self.newest(|| read::clock(&self.readers), |clock| clock.current).await
    }

    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        let found = read::object(&self.readers, key, at).await?;
        if let Some(stored) = &found {
            self.connector.history().saw(stored.revision);
        }
        Ok(found)
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        let list = || list::list(&self.readers, query, self.connector.ring().seen());
        if query.at.is_some() { list().await } else { self.newest(list, |page| page.revision).await }
    }

    async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error> {
        if self.connector.is_closed() {
            return Err(closed());
        }
        self.writer.lock().await.commit(batch).await
    }

    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error> {
        let piece = read::changes(&self.readers, of, after, bound).await?;
        self.connector.history().saw(piece.through);
        self.connector.history().remember(&piece.changes);
        Ok(piece)
    }

    async fn bell(&self) {
        self.connector.ring().rung().await;
    }

    fn epoch(&self) -> u64 {
        self.connector.history().epoch()
    }

    async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
        read::older_than(&self.readers, age).await
    }

    async fn history_bytes(&self) -> Result<u64, Error> {
        compact::history_bytes(&self.readers).await
    }

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        compact::compact(&self.readers, through, limit).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        if self.connector.is_closed() {
            return Err(closed());
        }
        let mut session = self.connector.session("advances").await?;
        look::advance(&mut session, self.connector.history(), self.connector.ring(), to).await
    }

    async fn failed(&self) -> TaskFailure {
        self.tasks.failed().await
    }

    async fn close(&self) {
        self.connector.close();
        self.writer.lock().await.close();
        // Their sessions end with them.
        self.tasks.abort().await;
    }
}

#[cfg(test)]
mod tests;
