//! Committing a batch: two round trips and one flush, whatever its size.
//!
//! The first trip takes the lock of the log and loads the heads, the second writes and commits. Each is a
//! pipeline of statements. They run READ COMMITTED, where every statement sees the commits before it: the
//! lock is a statement of its own, so the statements behind it see all commits of the previous holder. The
//! lock is released at the end of the transaction, when its commit is visible: the order of the lock is the
//! order of revisions and of visibility.

use std::collections::HashMap;
use std::sync::Arc;

use model::{ObjectKey, Revision, Uid};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::{Failure, corrupt};
use super::limits::set_aside;
use super::locks;
use super::rows::{attributes, get, optional_revision, revision, value};
use super::session::{Connector, Gate, STATEMENT_TIMEOUT, Session};
use super::write::{self, Write};
use crate::engine::{Committed, Transaction};
use crate::history::doubtful;
use crate::plan::{Head, Wanted, plan, wanted};
use crate::types::Error;

/// The one session of this server that writes.
pub struct Writer {
    connector: Arc<Connector>,
    session: Option<Session>,
    gate: Gate,
}

/// Result of the first trip.
struct Loaded {
    clock: Revision,
    incarnation: String,
    heads: HashMap<ObjectKey, Head>,
}

impl Writer {
    /// A writer that connects with the first commit.
    pub fn new(connector: Arc<Connector>) -> Self {
        Self { connector, session: None, gate: Gate::default() }
    }

    /// Commits a batch.
    pub async fn commit(&mut self, mut batch: Vec<Transaction>) -> Result<Committed, Error> {
        let refused = set_aside(&mut batch);
        let (mut session, Loaded { clock, heads, .. }) = self.begin(&batch).await?;
        let mut plan = plan(batch, heads, clock);
        let written = if plan.changes.is_empty() {
            let ended = session.driver.within(STATEMENT_TIMEOUT, session.client.batch_execute("COMMIT"));
            ended.await.map_err(Error::from)
        } else {
            write(&mut session, &Write::of(&plan)).await
        };
        if let Err(error) = written {
            // Only here the batch may have been committed all the same: if so, the bell brings its changes.
            self.connector.ring().lose_writer();
            return Err(error);
        }
        if !self.connector.is_current(&session) {
            // Another session found a loss meanwhile: this commit may have gone to the former primary.
            self.connector.ring().lose_writer();
            return Err(Error::OutcomeUnknown { reason: doubtful().to_string() });
        }
        self.connector.ring().committed(clock, plan.revision);
        self.connector.history().saw(plan.revision);
        self.connector.history().remember(&plan.changes);
        self.session = Some(session);
        for (place, error) in refused {
            plan.outcomes[place] = Err(error);
        }
        Ok(Committed { outcomes: plan.outcomes, changes: plan.changes })
    }

    /// Ends the session.
    pub fn close(&mut self) {
        self.session = None;
    }

    /// The first trip. The session is returned only after a success; one that is dropped leaves nothing
    /// behind.
    async fn begin(&mut self, batch: &[Transaction]) -> Result<(Session, Loaded), Error> {
        let wanted = wanted(batch);
        if let Some(mut session) = self.session.take().filter(|session| self.connector.is_current(session)) {
            let seen = self.connector.history().seen();
            match load(&mut session, &wanted).await {
                Ok(rows) => {
                    let loaded = loaded(&rows, &wanted)?;
                    if self.fits(&session, seen, &loaded).is_ok() {
                        return Ok((session, loaded));
                    }
                }
                // Nothing was written yet, and the session may have been lost long before it was noticed.
                Err(failure) if failure.is_loss() && !matches!(failure, Failure::Late) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        let mut session = self.gate.connect(&self.connector, "writes").await?;
        let process = session.query("SELECT pg_backend_pid()", &[]).await?;
        if let Some(row) = process.first() {
            self.connector.ring().set_writer(get(row, 0)?);
        }
        let seen = self.connector.history().seen();
        let loaded = loaded(&load(&mut session, &wanted).await?, &wanted)?;
        self.fits(&session, seen, &loaded)?;
        Ok((session, loaded))
    }

    /// Checks that the loaded state belongs to the known history, so that a batch may be planned with it.
    fn fits(&self, session: &Session, seen: Revision, loaded: &Loaded) -> Result<(), Error> {
        let Loaded { clock, incarnation, .. } = loaded;
        self.connector.history().compare(session.generation, seen, *clock, incarnation)
    }
}

/// Begins a transaction, waits for the lock, loads the heads: in one trip.
async fn load(session: &mut Session, wanted: &[Wanted<'_>]) -> Result<Vec<Row>, Failure> {
    let mut resources = Vec::with_capacity(wanted.len());
    let mut namespaces = Vec::with_capacity(wanted.len());
    let mut names = Vec::with_capacity(wanted.len());
    let mut whole = Vec::with_capacity(wanted.len());
    for Wanted { key, value } in wanted {
        resources.push(key.resource.as_str());
        namespaces.push(key.namespace.as_str());
        names.push(key.name.as_str());
        whole.push(*value);
    }
    let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", locks::wait_for(locks::COMMIT));
    let heads = session.prepare(write::heads(wanted.len())).await?;
    let Session { client, driver, .. } = session;
    let keys: [&(dyn ToSql + Sync); 4] = match wanted {
        [_] => [&resources[0], &namespaces[0], &names[0], &whole[0]],
        _ => [&resources, &namespaces, &names, &whole],
    };
    let loading = async {
        // `join!` sends in this order.
        let (begun, rows) = futures::join!(client.batch_execute(&begin), client.query(&heads, &keys));
        begun?;
        rows
    };
    driver.within(STATEMENT_TIMEOUT, loading).await
}

/// Writes and commits: in one trip.
async fn write(session: &mut Session, write: &Write<'_>) -> Result<(), Error> {
    let statement = session.prepare(&write.sql).await?;
    let parameters = write.parameters();
    let Session { client, driver, .. } = session;
    let writing = async {
        let (written, committed) =
            futures::join!(client.execute(&statement, &parameters), client.batch_execute("COMMIT"));
        // If the write failed, the commit only ends the transaction.
        written.and(committed)
    };
    driver.within(STATEMENT_TIMEOUT, writing).await.map_err(Failure::in_commit)
}

/// Rows of the clock's revision, of a head (place, revision, uid, attributes, value, bytes), and of the incarnation. There is one row at
/// least.
fn loaded(rows: &[Row], wanted: &[Wanted<'_>]) -> Result<Loaded, Error> {
    let first = rows.first().ok_or_else(|| corrupt("the clock is missing"))?;
    let mut heads = HashMap::with_capacity(rows.len());
    for row in rows {
        let Some(place) = get::<Option<i64>>(row, 1)? else { break };
        let place = usize::try_from(place - 1).ok();
        let Some(Wanted { key, value: whole }) = place.and_then(|place| wanted.get(place)) else {
            return Err(corrupt("a head that nobody asked for"));
        };
        let Some(revision) = optional_revision(row, 2)? else {
            return Err(corrupt(format!("the head of {key} is missing from the log")));
        };
        let head = Head {
            revision,
            uid: Uid(get(row, 3)?),
            attributes: attributes(row, 4)?,
            value: if *whole { Some(value(row, 5)?) } else { None },
            bytes: get::<i64>(row, 6)?.unsigned_abs(),
        };
        heads.insert((*key).clone(), head);
    }
    Ok(Loaded { clock: revision(first, 0)?, incarnation: get(first, 7)?, heads })
}
