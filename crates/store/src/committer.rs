//! Group commit: one task drains the queue of transactions, commits them as one batch and answers each
//! writer.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::compactor::Pressure;
use crate::engine::{Committed, Engine, Transaction};
use crate::health::Health;
use crate::hub::Outlet;
use crate::metrics::Metrics;
use crate::types::{Error, Write, Written};

/// Bounds of the queue and of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    pub writes: usize,
    pub bytes: usize,
    /// Index entries: each is a row, and every other writer waits while it is written.
    pub entries: usize,
}

/// Transactions that may be queued; further writers wait for a slot.
const QUEUE: usize = 4096;

/// Size of the queue in batches of [`BatchLimits::bytes`]; further writers wait for room.
const QUEUED_BATCHES: usize = 8;

/// A transaction that waits for its commit.
struct Job {
    transaction: Transaction,
    /// Number of its steps that write. Requirements are not counted: many transactions share the object that
    /// they require.
    writes: usize,
    size: usize,
    entries: usize,
    answer: oneshot::Sender<Result<Vec<Written>, Error>>,
    /// Returns its share of the queue's room when the job is done.
    _room: OwnedSemaphorePermit,
}

/// Entrance of the queue: accepts transactions from writers.
#[derive(Clone)]
pub(crate) struct Queue {
    jobs: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
    room_bytes: usize,
    turn: Turn,
}

/// Held while a batch is filled: by the committer, or by a caller of [`Queue::hold`] that fills the queue
/// first.
type Turn = Arc<Mutex<()>>;

/// While it lives, writes stay in the queue; then they are committed together.
pub struct Hold(#[expect(dead_code, reason = "it is held")] OwnedMutexGuard<()>);

impl Queue {
    /// Pauses the committer until the guard is dropped.
    pub async fn hold(&self) -> Hold {
        Hold(Arc::clone(&self.turn).lock_owned().await)
    }

    /// Queues a transaction and waits for its commit.
    pub async fn write(&self, transaction: Transaction) -> Result<Vec<Written>, Error> {
        if transaction.is_empty() {
            return Ok(Vec::new());
        }
        let size = transaction.iter().map(Write::size).sum::<usize>();
        let writes = transaction.iter().filter(|step| step.writes()).count();
        let entries = transaction.iter().map(Write::entries).sum::<usize>();
        // A transaction that is larger than the whole queue takes all of its room.
        let room = u32::try_from(size.min(self.room_bytes)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(room).await.map_err(|_| closed())?;
        let (answer, answered) = oneshot::channel();
        let job = Job { transaction, writes, size, entries, answer, _room: room };
        self.jobs.send(job).await.map_err(|_| closed())?;
        // Every job is answered, unless the committer is aborted in the middle of it.
        let unknown =
            |_| Error::OutcomeUnknown { reason: "the committer ended before it answered".to_owned() };
        answered.await.map_err(unknown)?
    }
}

fn closed() -> Error {
    Error::Unavailable { reason: "the store is closed".to_owned() }
}

/// The committer task and the entrance of its queue. On shutdown the task commits the queued transactions,
/// accepts no more, and ends.
pub(crate) fn committer(
    engine: Arc<dyn Engine>,
    outlet: Outlet,
    pressure: Arc<Pressure>,
    limits: BatchLimits,
    stop: watch::Receiver<bool>,
    metrics: Metrics,
    health: Arc<Health>,
) -> (Queue, impl Future<Output = ()>) {
    let (jobs, queued) = mpsc::channel(QUEUE);
    let room_bytes = limits.bytes.saturating_mul(QUEUED_BATCHES).min(Semaphore::MAX_PERMITS);
    let turn = Turn::default();
    let queue =
        Queue { jobs, room: Arc::new(Semaphore::new(room_bytes)), room_bytes, turn: Arc::clone(&turn) };
    let committer = Committer { engine, outlet, pressure, limits, metrics, health, turn, left_over: None };
    (queue, committer.run(queued, stop))
}

struct Committer {
    engine: Arc<dyn Engine>,
    outlet: Outlet,
    pressure: Arc<Pressure>,
    limits: BatchLimits,
    metrics: Metrics,
    health: Arc<Health>,
    turn: Turn,
    /// Taken from the queue, but too large for the previous batch.
    left_over: Option<Job>,
}

impl Committer {
    async fn run(mut self, mut queued: mpsc::Receiver<Job>, mut stop: watch::Receiver<bool>) {
        loop {
            let first = match self.left_over.take() {
                Some(job) => job,
                None => tokio::select! {
                    biased;
                    job = queued.recv() => match job {
                        Some(job) => job,
                        None => return,
                    },
                    _ = stop.wait_for(|stop| *stop), if !queued.is_closed() => {
                        queued.close();
                        continue;
                    }
                },
            };
            // Writers that were just answered run first: their next writes join this batch instead of the
            // next one.
            tokio::task::yield_now().await;
            let turn = Arc::clone(&self.turn).lock_owned().await;
            let batch = self.fill(first, &mut queued);
            drop(turn);
            self.commit(batch).await;
        }
    }

    /// Drains the queue into a batch, up to the batch limits.
    fn fill(&mut self, first: Job, queued: &mut mpsc::Receiver<Job>) -> Vec<Job> {
        let (mut writes, mut bytes, mut entries) = (first.writes, first.size, first.entries);
        let mut batch = vec![first];
        while let Ok(job) = queued.try_recv() {
            writes += job.writes;
            bytes += job.size;
            entries += job.entries;
            let limits = &self.limits;
            if writes > limits.writes || bytes > limits.bytes || entries > limits.entries {
                self.left_over = Some(job);
                break;
            }
            batch.push(job);
        }
        batch
    }

    async fn commit(&self, batch: Vec<Job>) {
        let mut answers = Vec::with_capacity(batch.len());
        let mut transactions = Vec::with_capacity(batch.len());
        let writes = batch.iter().map(|job| job.writes).sum::<usize>();
        for job in batch {
            answers.push((job.answer, job._room));
            transactions.push(job.transaction);
        }
        let started = Instant::now();
        let result = self.engine.commit(transactions).await;
        self.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
        self.metrics.batch_writes.observe(writes as f64);
        self.health.committed(result.is_ok());
        match result {
            // Answer the writers first: watches can wait a moment longer.
            Ok(Committed { outcomes, changes }) => {
                for ((answer, _room), outcome) in answers.into_iter().zip(outcomes) {
                    // A writer that was dropped needs no answer.
                    let _ = answer.send(outcome);
                }
                self.pressure.add(changes.iter().map(|change| change.value.len() as u64).sum());
                self.outlet.send(changes);
            }
            Err(error) => {
                tracing::warn!(%error, writes, "a commit failed");
                for (answer, _room) in answers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }
}
