//! The doorbell for commits of other servers: by NOTIFY, by a slow poll, and by gaps that a commit of this
//! server finds.
//!
//! NOTIFY is fast and may be lost with the session that listens; the poll is slow and cannot be lost.
//! Correctness depends on the poll alone.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use model::Revision;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::failure::Failure;
use super::rows::{get, revision};
use super::session::{Connector, Session};
use crate::types::Error;

/// No process of PostgreSQL has this id.
const NOBODY: i32 = 0;

/// A poll reads one row: a session that takes longer counts as lost.
const POLL_TIMEOUT: Duration = Duration::from_secs(5);

const POLL: &str = "SELECT revision, (SELECT i.incarnation::text FROM incarnation i) FROM clock";

/// Pause before a lost session is made again.
const PAUSE: Duration = Duration::from_millis(500);

/// The bell of this server.
#[derive(Default)]
pub struct Ring {
    /// All commits up to here are this server's, or the bell was rung for them.
    seen: AtomicU64,
    /// The backend process of this server's writer: its notifications carry no news.
    writer: AtomicI32,
    bell: Notify,
}

impl Ring {
    /// Waits for the bell. A ring is kept until the next wait.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Rings unconditionally.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// The newest revision that this server knows of.
    pub fn seen(&self) -> Revision {
        Revision(self.seen.load(Ordering::Relaxed))
    }

    /// Sets the backend process that commits for this server.
    pub fn set_writer(&self, process: i32) {
        self.writer.store(process, Ordering::Relaxed);
    }

    /// Records that the writer's session is lost. The outcome of its last commit is unknown, so it counts as
    /// another server's.
    pub fn lose_writer(&self) {
        self.writer.store(NOBODY, Ordering::Relaxed);
    }

    /// Records a commit of this server from one revision to another. Commits of other servers may lie before
    /// it.
    pub fn committed(&self, from: Revision, to: Revision) {
        if self.seen.fetch_max(to.0, Ordering::Relaxed) < from.0 {
            self.bell.notify_one();
        }
    }

    /// Handles a notification: a process announced a revision.
    pub fn heard(&self, process: i32, payload: &str) {
        if process == self.writer.load(Ordering::Relaxed) {
            return;
        }
        match payload.parse() {
            Ok(revision) => self.saw(revision),
            // Not from this program: it costs one read of the clock.
            Err(_) => self.bell.notify_one(),
        }
    }

    /// Records that the clock was read at a revision.
    pub fn saw(&self, revision: Revision) {
        if self.seen.fetch_max(revision.0, Ordering::Relaxed) < revision.0 {
            self.bell.notify_one();
        }
    }
}

/// Listens and polls for ever, on a session of its own that is made again when it is lost.
pub async fn attend(connector: Arc<Connector>, listen: bool, poll: Duration) {
    loop {
        let result = match connector.session("listens").await {
            Ok(mut session) => listen_and_poll(&mut session, &connector, listen, poll).await,
            Err(error) => Err(error),
        };
        let Err(error) = result;
        tracing::info!(%error, "lost the PostgreSQL session that listens for other servers' commits; reconnecting");
        sleep(poll.min(PAUSE)).await;
    }
}

async fn listen_and_poll(
    session: &mut Session,
    connector: &Connector,
    listen: bool,
    poll: Duration,
) -> Result<Infallible, Error> {
    if listen {
        let listening = session.client.batch_execute("LISTEN orlop");
        session.driver.within(POLL_TIMEOUT, listening).await?;
    }
    loop {
        let seen = connector.history().seen();
        // After LISTEN, so that no commit falls between.
        let rows = match timeout(POLL_TIMEOUT, session.query(POLL, &[])).await {
            Ok(rows) => rows?,
            Err(_) => return Err(Failure::Late.into()),
        };
        if let Some(row) = rows.first() {
            let revision = revision(row, 0)?;
            // The tables may have been replaced without a session that noticed.
            connector.history().compare(session.generation, seen, revision, get(row, 1)?)?;
            connector.ring().saw(revision);
        }
        if timeout(poll, session.driver.lost()).await.is_ok() {
            return Err(Error::Unavailable { reason: "the connection was closed".to_owned() });
        }
    }
}
