//! A database file: a lock against other processes, one writer thread, one checkpoint thread, a few readers.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tasks::{Reporter, TaskFailure};
use tokio::sync::{Semaphore, oneshot};

use super::backend::{blocking, keep_statements};
use super::backup::{self, Copies, CopyLog};
use super::error::{closed, open_failed, unavailable};
use super::lock::Lock;
use super::{Durability, FileOptions, private, schema};
use crate::engine::Snapshot;
use crate::types::Error;

/// Connections for look-ups. They are held for microseconds, so two are enough for many cores.
const LOOKERS: usize = 2;

/// Time that a connection waits for the others of this process; only a restart of the write-ahead log takes
/// noticeable time.
const BUSY: Duration = Duration::from_secs(10);

/// Time that the writer waits for readers when the write-ahead log should start over.
const RESTART: Duration = Duration::from_millis(250);

/// Multiple of the checkpoint size at which the writer stops to let the write-ahead log start over.
const WAL_FACTOR: u32 = 8;

/// Keeps the index of the write-ahead log in this process's memory, not in a mapped file beside the database:
/// if that file stops taking writes, the process would end with SIGBUS, where it now fails a commit. SQLite
/// locks out other processes as well.
#[cfg(unix)]
const VFS: &str = "unix-excl";
#[cfg(windows)]
const VFS: &str = "win32";

/// The names of the threads.
pub(super) const WRITER: &str = "the SQLite writer";
pub(super) const CHECKPOINTER: &str = "the SQLite checkpointer";

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// An open database file.
pub struct FileDatabase {
    lookers: Vec<Mutex<Option<Connection>>>,
    next_looker: AtomicUsize,
    scanners: Arc<Scanners>,
    copies: Arc<Copies>,
    writer: Mutex<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    reporter: Reporter,
    lock: Mutex<Option<Arc<Lock>>>,
}

/// Connections for lists and log reads, and the right to use one.
struct Scanners {
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    options: FileOptions,
}

impl Scanners {
    /// An idle connection, or a new one: most servers never use as many as they may.
    fn take(&self) -> Result<Connection, Error> {
        let idle = held(&self.idle).pop();
        match idle {
            Some(connection) => Ok(connection),
            None if self.permits.is_closed() => Err(closed()),
            None => connect_to_read(&self.options),
        }
    }
}

impl FileDatabase {
    /// Opens or makes the file.
    pub fn open(options: &FileOptions) -> Result<Self, Error> {
        let name = options.path.display().to_string();
        let lock = Lock::take(&options.path, &name)?;
        not_lost(options, &name)?;
        private::prepare(&options.path)
            .map_err(|error| open_failed(&name, &Error::Unavailable { reason: error.to_string() }))?;
        backup::clean(&options.path);
        let failed = |error| open_failed(&name, &unavailable(error));
        let is_new = length(&options.path) == 0;
        let mut writer = connect(options, OpenFlags::SQLITE_OPEN_CREATE)?;
        if is_new {
            // No write was acknowledged yet: the first acknowledged commit brings all of the log to the disk.
            writer.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
        }
        schema::migrate(&mut writer, &name)?;
        writer.pragma_update(None, "synchronous", synchronous(options)).map_err(failed)?;
        writer.busy_timeout(RESTART).map_err(failed)?;
        // Some of each are opened at the start: files that take no writes any more take no new reader either.
        let lookers = (0..LOOKERS)
            .map(|_| Ok(Mutex::new(Some(connect_to_read(options)?))))
            .collect::<Result<Vec<_>, Error>>()?;
        let idle = Mutex::new(vec![connect_to_read(options)?]);
        let permits = Semaphore::new(options.readers.max(1));
        let scanners = Arc::new(Scanners { idle, permits, options: options.clone() });
        let (jobs, queue) = channel();
        let reporter = Reporter::default();
        let threads = start_threads(writer, options, queue, &reporter).map_err(|error| Error::Open {
            reason: format!("{name}: no thread could be started: {error}"),
        })?;
        Ok(Self {
            lookers,
            next_looker: AtomicUsize::new(0),
            scanners,
            copies: Arc::default(),
            writer: Mutex::new(Some(jobs)),
            threads: Mutex::new(threads),
            reporter,
            lock: Mutex::new(Some(Arc::new(lock))),
        })
    }

    /// Runs a look-up in place.
    pub fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let turn = self.next_looker.fetch_add(1, Ordering::Relaxed);
        let looker = held(&self.lookers[turn % self.lookers.len()]);
        work(looker.as_ref().ok_or_else(closed)?)
    }

    /// Runs a longer read on a blocking thread, when a reader is free.
    pub async fn scan<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let scanners = Arc::clone(&self.scanners);
        blocking_with_permit(scanners, work).await
    }

    /// Copies the database as one reader sees it.
    pub async fn backup(&self) -> Result<Snapshot, Error> {
        let (copies, path) = (Arc::clone(&self.copies), self.scanners.options.path.clone());
        let mut log = CopyLog::new(Instant::now());
        let report = move |copied| log.note(copied, Instant::now());
        self.scan(move |connection| copies.copy(connection, &path, report)).await
    }

    /// Runs a write on the writer thread, after those before it.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let lock = held(&self.lock).clone().ok_or_else(closed)?;
        let job: Job = Box::new(move |connection| {
            // The caller may be dropped; the write has happened all the same.
            let _ = answer.send(work(connection).map_err(|error| lock.explain(error)));
        });
        let sender = held(&self.writer).clone().ok_or_else(closed)?;
        sender.send(job).map_err(|_| closed())?;
        drop(sender);
        answered.await.map_err(|_| closed())?
    }

    /// Makes the thread of this name panic at its next work. Returns whether it runs.
    #[cfg(test)]
    pub fn inject_fault(&self, name: &str) -> bool {
        self.reporter.inject_fault(name)
    }

    /// Resolves when a thread has ended early.
    pub async fn failed(&self) -> TaskFailure {
        self.reporter.failed().await
    }

    /// Ends the threads after the work that is queued, closes the connections and releases the lock.
    pub async fn close(&self) {
        self.scanners.permits.close();
        self.reporter.stop();
        let writer = held(&self.writer).take();
        let threads = std::mem::take(&mut *held(&self.threads));
        let lookers: Vec<_> = self.lookers.iter().filter_map(|looker| held(looker).take()).collect();
        let idle = std::mem::take(&mut *held(&self.scanners.idle));
        let lock = held(&self.lock).take();
        let closing = blocking(move || {
            // One connection after the other: the last one folds the log back, and two at a time would leave
            // it to each other.
            drop((lookers, idle));
            drop(writer);
            join(threads);
            // Last: another process may open the file from here on.
            drop(lock);
            Ok(())
        });
        if let Err(error) = closing.await {
            tracing::warn!(%error, "cannot close the database cleanly");
        }
    }
}

impl Drop for FileDatabase {
    fn drop(&mut self) {
        self.reporter.stop();
        held(&self.writer).take();
        join(std::mem::take(&mut *held(&self.threads)));
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A connection is intact also after a panic: an open transaction is rolled back when it is dropped.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        // The reporter has the details of a panic.
        let _ = thread.join();
    }
}

async fn blocking_with_permit<T: Send + 'static>(
    scanners: Arc<Scanners>,
    work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let permit = scanners.permits.acquire().await.map_err(|_| closed())?;
    // The permit belongs to the work, which also continues when its caller is dropped.
    permit.forget();
    let scanners = Arc::clone(&scanners);
    blocking(move || {
        let mut loan = Loan { connection: None, scanners };
        let connection = loan.scanners.take()?;
        work(loan.connection.insert(connection))
    })
    .await
}

/// A borrowed reader that is returned, with its permit, when the work ends in whatever way.
struct Loan {
    connection: Option<Connection>,
    scanners: Arc<Scanners>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        if self.scanners.permits.is_closed() {
            return;
        }
        if let Some(connection) = self.connection.take() {
            held(&self.scanners.idle).push(connection);
        }
        self.scanners.permits.add_permits(1);
    }
}

/// Refuses a database that lost its file: SQLite takes one that is missing or empty (or has one byte) for a
/// new database, and discards the log of the old one.
fn not_lost(options: &FileOptions, name: &str) -> Result<(), Error> {
    if length(&options.path) <= 1 && length(&private::beside(&options.path, "-wal")) > 0 {
        return Err(Error::Open {
            reason: format!(
                "{name} is empty or missing, but its write-ahead log {name}-wal is there: restore both from a backup, \
                 or remove the log to begin with an empty database"
            ),
        });
    }
    Ok(())
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.len())
}

/// A connection to the database of a server that is not running: it neither creates nor migrates anything.
pub fn connect_alone(options: &FileOptions) -> Result<Connection, Error> {
    connect_to_read(options)
}

/// A read-only connection, and the lock that keeps servers out meanwhile. Closing it leaves the write-ahead
/// log.
pub fn connect_to_check(path: &Path) -> Result<(Connection, Lock), Error> {
    let name = path.display().to_string();
    if !path.exists() {
        return Err(Error::Open { reason: format!("there is no database {name}") });
    }
    let lock = Lock::take(path, &name)?;
    let connection = connect_to_read(&FileOptions::new(path))?;
    let keep_log = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    keep_log.map_err(|error| open_failed(&name, &unavailable(error)))?;
    schema::check(&connection, &name)?;
    Ok((connection, lock))
}

fn connect_to_read(options: &FileOptions) -> Result<Connection, Error> {
    let reader = connect(options, OpenFlags::empty())?;
    let failed = |error| open_failed(&options.path.display().to_string(), &unavailable(error));
    reader.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(reader)
}

/// Only the first connection may create the file: a later one that does not find it must not begin another.
fn connect(options: &FileOptions, create: OpenFlags) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    let name = options.path.display().to_string();
    let failed = |error| open_failed(&name, &unavailable(error));
    let connection = Connection::open_with_flags_and_vfs(&options.path, flags, VFS).map_err(failed)?;
    // SQLite opens a read-only file without an error, and would make a log beside it that is read-only, too.
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
        let reason = "the database file is read-only".to_owned();
        return Err(open_failed(&name, &Error::Unavailable { reason }));
    }
    configure(connection, options).map_err(failed)
}

fn configure(connection: Connection, options: &FileOptions) -> rusqlite::Result<Connection> {
    keep_statements(&connection)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "page_size", 4096)?;
    if length(&options.path) == 0 {
        // There is nothing yet that a journal could restore, and making one waits for the disk three times.
        connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", synchronous(options))?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update_and_check(None, "mmap_size", options.mmap_bytes.to_string(), |_| Ok(()))?;
    Ok(connection)
}

fn synchronous(options: &FileOptions) -> &'static str {
    match options.durability {
        Durability::Full => "FULL",
        Durability::Process => "NORMAL",
    }
}

fn start_threads(
    mut writer: Connection,
    options: &FileOptions,
    queue: Receiver<Job>,
    reporter: &Reporter,
) -> std::io::Result<Vec<JoinHandle<()>>> {
    let wal = Arc::new(Wal { checkpoint_pages: options.checkpoint_pages.max(1), ..Wal::default() });
    let (request, requests) = sync_channel(1);
    let (of_checkpoints, options) = (Arc::clone(&wal), options.clone());
    let reporter_of_checkpoints = reporter.clone();
    let checkpointer = thread::Builder::new().name("sqlite-checkpoint".to_owned()).spawn(move || {
        let reporter = &reporter_of_checkpoints;
        reporter.run(CHECKPOINTER, || serve_checkpoints(&options, &requests, &of_checkpoints, reporter));
    })?;
    let reporter = reporter.clone();
    let writer = thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
        reporter.run(WRITER, || {
            if let Err(error) = wal.observe(&mut writer) {
                tracing::warn!(%error, "cannot observe the write-ahead log; it may grow");
            }
            while let Ok(job) = queue.recv() {
                reporter.fault_point(WRITER);
                job(&mut writer);
                wal.tend(&writer, &request);
            }
        });
        // The checkpointer ends with the request channel: after the writer's connection is closed, and after
        // a panic was reported.
        drop(writer);
        drop(request);
    })?;
    Ok(vec![writer, checkpointer])
}

/// Length of the write-ahead log.
#[derive(Default)]
struct Wal {
    /// Pages in the log.
    pages: AtomicU32,
    /// Pages of them that the last checkpoint folded back.
    folded: AtomicU32,
    checkpoint_pages: u32,
    /// The length at which the writer tries again to start the log over.
    restart_at: AtomicU32,
    turn: Mutex<()>,
}

impl Wal {
    fn observe(self: &Arc<Self>, writer: &mut Connection) -> rusqlite::Result<()> {
        let wal = Arc::clone(self);
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            wal.pages.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// After a commit: requests a checkpoint when the log has grown enough, and waits for it to start over
    /// when it has grown far too much.
    fn tend(&self, writer: &Connection, request: &SyncSender<()>) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.folded.load(Ordering::Relaxed) {
            // The log started over by itself.
            self.folded.store(0, Ordering::Relaxed);
        }
        let too_many = self.checkpoint_pages.saturating_mul(WAL_FACTOR);
        if pages >= self.restart_at.load(Ordering::Relaxed).max(too_many) {
            // A checkpoint beside a busy writer never catches up with it, so now and then the writer has to
            // wait. If a long read holds it up, it goes on for a while before it waits again.
            let done = self.checkpoint(writer, "PRAGMA wal_checkpoint(RESTART)");
            let restart_at = if done { 0 } else { pages.saturating_add(self.checkpoint_pages) };
            self.restart_at.store(restart_at, Ordering::Relaxed);
        } else if pages - self.folded.load(Ordering::Relaxed).min(pages) >= self.checkpoint_pages {
            match request.try_send(()) {
                Ok(()) | Err(TrySendError::Full(())) => {}
                Err(TrySendError::Disconnected(())) => tracing::error!("the checkpoint thread is gone"),
            }
        }
    }

    /// Runs a checkpoint. Returns whether it was complete.
    fn checkpoint(&self, connection: &Connection, sql: &str) -> bool {
        // One at a time: SQLite refuses a second one instead of waiting for the first.
        let _turn = held(&self.turn);
        let counts = connection.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(2)?)));
        match counts {
            Ok((busy, folded)) => {
                self.folded.store(u32::try_from(folded.max(0)).unwrap_or(u32::MAX), Ordering::Relaxed);
                busy == 0
            }
            Err(error) => {
                // The log only grows until a later one succeeds; a full disk also fails the writer, which
                // reports it.
                tracing::warn!(%error, "checkpoint failed; the write-ahead log grows until a later one succeeds");
                false
            }
        }
    }
}

fn serve_checkpoints(options: &FileOptions, requests: &Receiver<()>, wal: &Wal, reporter: &Reporter) {
    let mut connection = None;
    while requests.recv().is_ok() {
        reporter.fault_point(CHECKPOINTER);
        if connection.is_none() {
            connection = connect(options, OpenFlags::empty())
                .inspect_err(|error| tracing::warn!(%error, "cannot open a connection for checkpoints"))
                .ok();
        }
        if let Some(connection) = &connection {
            wal.checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)");
        }
    }
}
