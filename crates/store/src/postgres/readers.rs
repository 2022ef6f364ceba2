//! The sessions that read: a few tasks, each with a session of its own, take queries from one queue.
//!
//! A query runs in such a task and not in its caller: a caller that stops polling in the middle (a client that does not read
//! its list) would otherwise keep a session from everybody else.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::{Failure, closed};
use super::session::{Connector, Gate, Session};
use crate::types::Error;

/// Queries that may wait; more callers wait for a place.
const QUEUE: usize = 1024;

/// A caller waits no longer than this, in the queue and for the answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A statement with its parameters.
pub struct Query {
    sql: String,
    params: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Query {
    /// A statement that is complete.
    pub fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), params: Vec::new() }
    }

    /// Gives the next parameter of the statement.
    #[must_use]
    pub fn with(mut self, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.params.push(Box::new(value));
        self
    }

    /// Adds a parameter; gives what stands for it in the statement.
    pub fn bind(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.params.push(Box::new(value));
        format!("${}", self.params.len())
    }

    /// Appends to the statement.
    pub fn push(&mut self, sql: std::fmt::Arguments<'_>) {
        self.sql.write_fmt(sql).expect("a string takes all text");
    }

    /// The statement.
    #[cfg(test)]
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// How many parameters it has.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.params.len()
    }

    async fn run(&self, session: &mut Session) -> Result<Vec<Row>, Failure> {
        let params: Vec<&(dyn ToSql + Sync)> =
            self.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
        session.query(&self.sql, &params).await
    }
}

struct Job {
    query: Query,
    answer: oneshot::Sender<Result<Vec<Row>, Error>>,
}

/// Where queries go.
pub struct Readers {
    jobs: mpsc::Sender<Job>,
}

impl Readers {
    /// Starts so many tasks.
    pub fn start(connector: &Arc<Connector>, count: usize, tasks: &mut JoinSet<()>) -> Self {
        let (jobs, queued) = mpsc::channel(QUEUE);
        let queued = Arc::new(Mutex::new(queued));
        for _ in 0..count.max(1) {
            let reader = Reader { connector: Arc::clone(connector), session: None, gate: Gate::default() };
            tasks.spawn(reader.serve(Arc::clone(&queued)));
        }
        Self { jobs }
    }

    /// Runs a query on the next session that is free.
    pub async fn query(&self, query: Query) -> Result<Vec<Row>, Error> {
        let asking = async {
            let (answer, answered) = oneshot::channel();
            self.jobs.send(Job { query, answer }).await.map_err(|_| closed())?;
            answered.await.map_err(|_| closed())?
        };
        timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(Failure::Late.into()))
    }
}

struct Reader {
    connector: Arc<Connector>,
    session: Option<Session>,
    gate: Gate,
}

impl Reader {
    async fn serve(mut self, queued: Arc<Mutex<mpsc::Receiver<Job>>>) {
        let next = || async { queued.lock().await.recv().await };
        loop {
            let job = match &mut self.session {
                None => next().await,
                Some(session) => tokio::select! {
                    job = next() => job,
                    // A lost session is noticed while it is idle, and not by the next query.
                    () = session.driver.lost() => {
                        self.session = None;
                        continue;
                    }
                },
            };
            let Some(Job { query, answer }) = job else { return };
            if !answer.is_closed() {
                let _ = answer.send(self.run(&query).await);
            }
        }
    }

    async fn run(&mut self, query: &Query) -> Result<Vec<Row>, Error> {
        // A session that fails is given up, whatever it was: the next one starts afresh.
        if let Some(mut session) = self.session.take() {
            match query.run(&mut session).await {
                Ok(rows) => {
                    self.session = Some(session);
                    return Ok(rows);
                }
                // A read may be done twice, and a session may have been lost long before it was noticed.
                Err(failure) if failure.is_loss() && !matches!(failure, Failure::Late) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        let mut session = self.gate.connect(&self.connector, "reads").await?;
        let rows = query.run(&mut session).await?;
        self.session = Some(session);
        Ok(rows)
    }
}
