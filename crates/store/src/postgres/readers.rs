//! The sessions that read: a few tasks, each with a session of its own, take queries from one queue, and
//! batches of single-object reads from another.
//!
//! A query runs in such a task and not in its caller: a caller that stops polling in the middle (a client
//! that does not read its list) would otherwise block a session.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use model::ObjectKey;
use tasks::Tasks;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::{Failure, closed};
use super::gets::{self, Get};
use super::session::{Connector, Gate, Session};
use crate::types::{Error, Stored};

/// Queries that may wait; more callers wait for a place.
const QUEUE: usize = 1024;

/// Objects that one statement reads.
const GETS: usize = 32;

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

    /// Binds the next parameter of the statement.
    #[must_use]
    pub fn with(mut self, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.params.push(Box::new(value));
        self
    }

    /// Adds a parameter; returns its placeholder for the statement.
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

    /// Number of parameters.
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

/// Entrance of the queues.
pub struct Readers {
    jobs: mpsc::Sender<Job>,
    gets: mpsc::Sender<Get>,
}

/// The queues.
struct Queued {
    jobs: mpsc::Receiver<Job>,
    gets: mpsc::Receiver<Get>,
}

/// Next work of a session.
enum Work {
    Query(Job),
    Gets(Vec<Get>),
}

impl Queued {
    async fn next(&mut self) -> Option<Work> {
        let mut gets = Vec::new();
        tokio::select! {
            Some(job) = self.jobs.recv() => Some(Work::Query(job)),
            1.. = self.gets.recv_many(&mut gets, GETS) => Some(Work::Gets(gets)),
            else => None,
        }
    }
}

impl Readers {
    /// Starts `count` tasks.
    pub fn start(connector: &Arc<Connector>, count: usize, tasks: &Tasks) -> Self {
        let (jobs, queued_jobs) = mpsc::channel(QUEUE);
        let (gets, queued_gets) = mpsc::channel(QUEUE);
        let queued = Arc::new(Mutex::new(Queued { jobs: queued_jobs, gets: queued_gets }));
        for _ in 0..count.max(1) {
            let reader = Reader { connector: Arc::clone(connector), session: None, gate: Gate::default() };
            tasks.start("a PostgreSQL reader", reader.serve(Arc::clone(&queued)));
        }
        Self { jobs, gets }
    }

    /// Runs a query on the next session that is free.
    pub async fn query(&self, query: Query) -> Result<Vec<Row>, Error> {
        ask(&self.jobs, |answer| Job { query, answer }).await
    }

    /// Reads an object, batched with those that other callers wait for.
    pub async fn get(&self, key: ObjectKey) -> Result<Option<Stored>, Error> {
        ask(&self.gets, |answer| Get { key, answer }).await
    }
}

async fn ask<J, T>(
    queue: &mpsc::Sender<J>,
    job: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> J,
) -> Result<T, Error> {
    let asking = async {
        let (answer, answered) = oneshot::channel();
        queue.send(job(answer)).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    };
    timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(Failure::Late.into()))
}

struct Reader {
    connector: Arc<Connector>,
    session: Option<Session>,
    gate: Gate,
}

impl Reader {
    async fn serve(mut self, queued: Arc<Mutex<Queued>>) {
        let next = || async { queued.lock().await.next().await };
        loop {
            let work = match &mut self.session {
                None => next().await,
                Some(session) => tokio::select! {
                    work = next() => work,
                    // A lost session is noticed while it is idle, not by the next query.
                    () = session.driver.lost() => {
                        self.session = None;
                        continue;
                    }
                },
            };
            match work {
                None => return,
                Some(Work::Query(Job { answer, .. })) if answer.is_closed() => {}
                Some(Work::Query(Job { query, answer })) => {
                    let _ = answer.send(self.run(&query).await);
                }
                Some(Work::Gets(mut gets)) => {
                    gets.retain(|get| !get.answer.is_closed());
                    let found = self.run(&gets::query(&gets)).await;
                    gets::answer(gets, found);
                }
            }
        }
    }

    async fn run(&mut self, query: &Query) -> Result<Vec<Row>, Error> {
        // A session that fails is dropped, whatever the failure: the next one starts afresh. So is one from
        // before a loss, which may lead to the former primary.
        if let Some(mut session) = self.session.take().filter(|session| self.connector.is_current(session)) {
            match query.run(&mut session).await {
                Ok(_) if !self.connector.is_current(&session) => {}
                Ok(rows) => {
                    self.session = Some(session);
                    return Ok(rows);
                }
                // A read may be repeated, and a session may have been lost long before it was noticed.
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
