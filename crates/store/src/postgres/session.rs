//! One connection to PostgreSQL, driven by its user, so that no task of its own has to be woken for each
//! answer.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Row, SimpleQueryMessage, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use super::bell::Ring;
use super::failure::{Failure, closed};
use super::look;
use crate::history::{Generation, History};
use crate::types::Error;

/// The settings of every session, and the question whether it leads to a standby.
///
/// Statistics are always outdated while a database grows, and a prepared statement keeps the plan that suited
/// an empty table. So the planner gets no choice: every query is written such that only the plan that walks
/// an index in key order remains when the others are switched off, and it is planned once.
///
/// The server ends the session of an unreachable client as soon as the client ends its own. Above all a
/// server that vanished in the middle of a commit must not hold the lock of the log for long.
const SETTINGS: &str = "
    SET search_path = orlop, pg_temp;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET enable_hashagg = off;
    SET enable_sort = off;
    SET enable_memoize = off;
    SET max_parallel_workers_per_gather = 0;
    SET jit = off;
    SET work_mem = '64MB';
    SET statement_timeout = '20s';
    SET idle_in_transaction_session_timeout = '10s';
    SET idle_session_timeout = 0;
    SET client_connection_check_interval = '5s';
    SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
    SELECT pg_is_in_recovery();
";

/// Longer than the server's own statement timeout, so that the server reports the reason, if it can.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(25);

type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Makes sessions.
pub struct Connector {
    address: Address,
    closed: AtomicBool,
    /// The host that was the primary the last time.
    host: AtomicUsize,
    /// Number of sessions made.
    made: AtomicU64,
    history: History,
    ring: Arc<Ring>,
}

impl Connector {
    /// For a database.
    pub fn new(address: Address) -> Self {
        let (closed, host) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { address, closed, host, made: AtomicU64::new(0), history: History::new(), ring: Arc::default() }
    }

    /// The history that the sessions have seen.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The bell that the sessions ring.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// The address of the database.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Refuses new sessions from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A new session, named after its role. The history of its database is not checked.
    pub async fn connect(&self, role: &str) -> Result<Session, Failure> {
        let mut result = Err(Failure::Late);
        for host in self.in_turn() {
            result = self.connect_to(host, role).await;
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// A new session whose database has the history that this server knows, or begins another one.
    pub async fn session(&self, role: &str) -> Result<Session, Error> {
        let mut result = Err(Failure::Late.into());
        for host in self.in_turn() {
            result = self.checked(host, role).await;
            if result.is_ok() {
                self.host.store(host, Ordering::Relaxed);
                self.made.fetch_add(1, Ordering::Relaxed);
                break;
            }
        }
        result
    }

    /// All hosts, starting with the last one that was the primary.
    fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, hosts) = (self.host.load(Ordering::Relaxed), self.address.hosts());
        (first..first + hosts).map(move |host| host % hosts)
    }

    async fn checked(&self, host: usize, role: &str) -> Result<Session, Error> {
        let mut session = self.connect_to(host, role).await?;
        session.generation = look::check(&mut session, &self.history, &self.ring).await?;
        Ok(session)
    }

    async fn connect_to(&self, host: usize, role: &str) -> Result<Session, Failure> {
        let connecting = async {
            let (client, connection) = self.address.config(host, role).connect(self.address.tls()).await?;
            let mut driver = Driver { connection: Some(connection), ring: Arc::clone(&self.ring) };
            let answers = driver.run(client.simple_query(SETTINGS)).await?;
            let last = answers.iter().rev().find_map(|answer| match answer {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            match last {
                // A standby shows an old state, and cannot listen.
                Some("t") => Err(Failure::Standby),
                _ => Ok(Session { client, driver, statements: HashMap::new(), generation: 0 }),
            }
        };
        timeout(self.address.patience(), connecting).await.unwrap_or(Err(Failure::Late))
    }

    /// Whether no loss was found since the session was made.
    pub fn is_current(&self, session: &Session) -> bool {
        session.generation == self.history.generation()
    }
}

/// One connection and its prepared statements. It is closed when it is dropped, which rolls back an open
/// transaction.
pub struct Session {
    /// Sends requests. The answers arrive only while [`Driver::run`] runs.
    pub client: Client,
    /// Moves the bytes.
    pub driver: Driver,
    statements: HashMap<String, Statement>,
    /// The check that found its database in order.
    pub generation: Generation,
}

impl Session {
    /// A statement, prepared at its first use.
    pub async fn prepare(&mut self, sql: &str) -> Result<Statement, Failure> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let Self { client, driver, statements, .. } = self;
        let statement = driver.within(STATEMENT_TIMEOUT, client.prepare(sql)).await?;
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Runs one statement.
    pub async fn query(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        let statement = self.prepare(sql).await?;
        self.driver.within(STATEMENT_TIMEOUT, self.client.query(&statement, params)).await
    }
}

/// The half of a session that reads and writes the socket.
pub struct Driver {
    /// `None` when it is lost.
    connection: Option<Connection<Socket, Stream>>,
    /// Only a session that listens is notified.
    ring: Arc<Ring>,
}

impl Driver {
    /// Runs work that waits for this session. When the connection is lost, pending answers fail.
    pub async fn run<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            self.poll(cx);
            // The bytes that just arrived may be the answer that the work waits for.
            work.as_mut().poll(cx)
        })
        .await
    }

    /// The same with a time limit.
    pub async fn within<T>(
        &mut self,
        limit: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        match self.run(timeout(limit, work)).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(Failure::Late),
        }
    }

    /// Waits until the connection is lost.
    pub async fn lost(&mut self) {
        poll_fn(|cx| {
            self.poll(cx);
            if self.connection.is_some() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) {
        while let Some(connection) = &mut self.connection {
            match connection.poll_message(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(AsyncMessage::Notification(notification)))) => {
                    self.ring.heard(notification.process_id(), notification.payload());
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => self.connection = None,
            }
        }
    }
}

/// The first pause after a failed attempt to connect; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Keeps callers that need a session from waiting one after the other for a server that does not answer: for
/// a while after a failed attempt they get its error at once, unless another caller has connected since.
#[derive(Default)]
pub struct Gate {
    failures: u32,
    shut: Option<Shut>,
}

/// A failed attempt.
struct Shut {
    until: Instant,
    /// [`Connector::made`] at that time.
    made: u64,
    error: Error,
}

impl Gate {
    /// Connects, or returns the reason why it cannot.
    pub async fn connect(&mut self, connector: &Connector, role: &str) -> Result<Session, Error> {
        if connector.is_closed() {
            return Err(closed());
        }
        let made = connector.made.load(Ordering::Relaxed);
        if let Some(Shut { until, made: then, error }) = &self.shut
            && Instant::now() < *until
            && made == *then
        {
            return Err(error.clone());
        }
        match connector.session(role).await {
            Ok(session) => {
                *self = Self::default();
                Ok(session)
            }
            Err(error) => {
                tracing::warn!(%error, place = connector.address().place(), "cannot connect to PostgreSQL");
                let pause = PAUSE.saturating_mul(1 << self.failures.min(6)).min(PAUSE_MAX);
                self.failures = self.failures.saturating_add(1);
                self.shut = Some(Shut { until: Instant::now() + pause, made, error: error.clone() });
                Err(error)
            }
        }
    }
}
