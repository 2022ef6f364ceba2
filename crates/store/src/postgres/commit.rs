//! Committing a batch: two round trips and one flush, whatever its size.
//!
//! The first trip takes the lock of the log and loads the heads, the second writes and commits. Each is a pipeline of
//! statements. They run READ COMMITTED, where every statement sees what was committed before it began: the lock is a statement
//! of its own, so whatever follows sees all that was committed by whoever held the lock before. The lock is released by the end
//! of the transaction, when its commit is visible: the order of the lock is the order of revisions and of visibility.

use std::collections::HashMap;
use std::sync::Arc;

use model::{ObjectKey, Revision, Uid};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::bell::Ring;
use super::failure::{Failure, corrupt};
use super::limits::set_aside;
use super::locks;
use super::rows::{attributes, get, optional_revision, revision, value};
use super::session::{Connector, Gate, STATEMENT_TIMEOUT, Session};
use super::write::{Statements, apply};
use crate::engine::{Committed, Transaction};
use crate::plan::{Head, Wanted, plan, wanted};
use crate::types::Error;

/// The one session of this server that writes.
pub struct Writer {
    connector: Arc<Connector>,
    ring: Arc<Ring>,
    session: Option<Open>,
    gate: Gate,
}

/// A session with its statements.
struct Open {
    session: Session,
    statements: Statements,
}

/// What the first trip brings.
struct Loaded {
    clock: Revision,
    heads: HashMap<ObjectKey, Head>,
}

impl Writer {
    /// Connects with the first commit.
    pub fn new(connector: Arc<Connector>, ring: Arc<Ring>) -> Self {
        Self { connector, ring, session: None, gate: Gate::default() }
    }

    /// Commits a batch.
    pub async fn commit(&mut self, mut batch: Vec<Transaction>) -> Result<Committed, Error> {
        let refused = set_aside(&mut batch);
        let (mut open, Loaded { clock, heads }) = self.begin(&batch).await?;
        let mut plan = plan(batch, heads, clock);
        let written = if plan.changes.is_empty() {
            open.nothing().await
        } else {
            let Open { session, statements } = &mut open;
            let work = apply(&session.client, statements, &plan);
            session.driver.within(STATEMENT_TIMEOUT, work).await
        };
        if let Err(failure) = written {
            // Here, and only here, the batch may have been committed all the same: if so, the bell brings its changes.
            self.ring.lose_writer();
            return Err(failure.into());
        }
        self.ring.committed(clock, plan.revision);
        self.session = Some(open);
        for (place, error) in refused {
            plan.outcomes[place] = Err(error);
        }
        Ok(Committed { outcomes: plan.outcomes, changes: plan.changes })
    }

    /// Ends the session.
    pub fn close(&mut self) {
        self.session = None;
    }

    /// The first trip. The session is given back only after a success; one that is dropped leaves nothing behind.
    async fn begin(&mut self, batch: &[Transaction]) -> Result<(Open, Loaded), Error> {
        let wanted = wanted(batch);
        if let Some(mut open) = self.session.take() {
            match open.load(&wanted).await {
                Ok(rows) => return Ok((open, loaded(&rows, &wanted)?)),
                // Nothing was written yet, and the session may have been lost long before it was noticed.
                Err(failure) if failure.is_loss() && !matches!(failure, Failure::Late) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        let session = self.gate.connect(&self.connector, "writes").await?;
        let mut open = Open::prepare(session, &self.ring).await?;
        let rows = open.load(&wanted).await?;
        Ok((open, loaded(&rows, &wanted)?))
    }
}

impl Open {
    async fn prepare(mut session: Session, ring: &Ring) -> Result<Self, Failure> {
        let rows = session.query("SELECT pg_backend_pid()", &[]).await?;
        if let Some(row) = rows.first() {
            ring.set_writer(row.try_get(0)?);
        }
        let preparing = Statements::prepare(&session.client);
        let statements = session.driver.within(STATEMENT_TIMEOUT, preparing).await?;
        Ok(Self { session, statements })
    }

    async fn load(&mut self, wanted: &[Wanted<'_>]) -> Result<Vec<Row>, Failure> {
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
        let Self { session, statements } = self;
        let client = &session.client;
        let keys: &[&(dyn ToSql + Sync)] = &[&resources, &namespaces, &names, &whole];
        let loading = async {
            // `join!` sends in this order.
            let (begun, rows) =
                futures::join!(client.batch_execute(&begin), client.query(&statements.heads, keys),);
            begun?;
            rows
        };
        session.driver.within(STATEMENT_TIMEOUT, loading).await
    }

    async fn nothing(&mut self) -> Result<(), Failure> {
        let Session { client, driver, .. } = &mut self.session;
        driver.within(STATEMENT_TIMEOUT, client.batch_execute("COMMIT")).await
    }
}

/// Rows of the clock's revision, and of a head: place, revision, uid, attributes, value. There is one row at least.
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
        };
        heads.insert((*key).clone(), head);
    }
    Ok(Loaded { clock: revision(first, 0)?, heads })
}
