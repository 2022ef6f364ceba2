//! Named background tasks with an owner: a task that ends early is reported with its name and reason.
//!
//! A component (a store, an API server, a controller manager) holds one [`Tasks`]. Its user decides what a [`TaskFailure`] means:
//! the binary exits, a test environment fails, an embedding program may ignore it.

#[cfg(feature = "faults")]
mod faults;

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use thiserror::Error;
use tokio::sync::SetOnce;
use tokio::task::{JoinError, JoinSet};

#[cfg(feature = "faults")]
pub use faults::Faults;

/// A task ended although its owner had not stopped it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{task} {cause}; this is a defect of the program")]
pub struct TaskFailure {
    /// The name under which the task was started.
    pub task: Cow<'static, str>,
    /// The way it ended.
    pub cause: Cause,
}

/// The way a task ended early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// It panicked, with this text.
    #[error("panicked: {0}")]
    Panicked(String),
    /// It returned.
    #[error("ended although nothing had asked it to")]
    Returned,
}

/// Owns the background tasks of one component. Dropping it aborts them.
#[derive(Default)]
pub struct Tasks {
    running: Mutex<JoinSet<()>>,
    reporter: Reporter,
}

/// Reports the first failure among the tasks of one owner. Clones share their state; none keeps a task alive.
#[derive(Clone, Default)]
pub struct Reporter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    first: SetOnce<TaskFailure>,
    /// The names of all running tasks.
    running: Mutex<Vec<Cow<'static, str>>>,
    /// The names of all failed tasks.
    failed: Mutex<Vec<Cow<'static, str>>>,
    is_stopping: AtomicBool,
    #[cfg(feature = "faults")]
    faults: Faults,
}

impl Tasks {
    /// Starts a task that runs until its owner stops. The name starts an error message: "the compactor".
    pub fn start(&self, name: impl Into<Cow<'static, str>>, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name.into(), task, false);
    }

    /// Starts a task that may end by itself: only a panic is a failure.
    pub fn start_finite(
        &self,
        name: impl Into<Cow<'static, str>>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.spawn(name.into(), task, true);
    }

    fn spawn(&self, name: Cow<'static, str>, task: impl Future<Output = ()> + Send + 'static, may_end: bool) {
        let reporter = self.reporter.clone();
        held(&reporter.0.running).push(name.clone());
        #[cfg(feature = "faults")]
        let task = reporter.0.faults.wrap(name.clone(), task);
        let mut running = self.running();
        // Finished tasks hold memory until they are joined.
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            let mut task = pin!(AssertUnwindSafe(task).catch_unwind());
            let ended = task.as_mut().await;
            // Reported before the task is dropped, so that tasks which end because its channels close are not
            // the first failure.
            reporter.note(name, ended, may_end);
        });
    }

    /// Marks the tasks as stopping: from now on their end is no failure.
    pub fn stop(&self) {
        self.reporter.stop();
    }

    /// Waits until all tasks have ended.
    pub async fn join(&self) {
        let mut running = std::mem::take(&mut *self.running());
        while running.join_next().await.is_some() {}
    }

    /// Aborts all tasks and waits until they have ended.
    pub async fn abort(&self) {
        self.stop();
        let mut running = std::mem::take(&mut *self.running());
        running.shutdown().await;
    }

    /// Resolves with the first failure; pends forever if there is none.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        self.reporter.failed()
    }

    /// The first failure so far.
    #[must_use]
    pub fn failure(&self) -> Option<TaskFailure> {
        self.reporter.0.first.get().cloned()
    }

    /// Whether a task of this name runs, or has ended early.
    #[must_use]
    pub fn has_started(&self, name: &str) -> bool {
        held(&self.reporter.0.running).iter().any(|running| running == name) || self.has_failed(name)
    }

    /// Whether the task of this name has ended early.
    #[must_use]
    pub fn has_failed(&self, name: &str) -> bool {
        held(&self.reporter.0.failed).iter().any(|failed| failed == name)
    }

    /// The failure reporter, for threads.
    #[must_use]
    pub fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }

    /// The names of all started tasks, in start order.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.reporter.names()
    }

    /// Makes the task of this name panic. Returns false if there is none.
    #[cfg(feature = "faults")]
    pub fn inject_fault(&self, name: &str) -> bool {
        self.reporter.inject_fault(name)
    }

    fn running(&self) -> MutexGuard<'_, JoinSet<()>> {
        held(&self.running)
    }
}

impl Reporter {
    /// Runs the work of a thread that lasts until the owner stops; an early end is a failure.
    pub fn run(&self, name: &'static str, work: impl FnOnce()) {
        #[cfg(feature = "faults")]
        drop(self.0.faults.register(name.into()));
        self.note(name.into(), catch_unwind(AssertUnwindSafe(work)), false);
    }

    /// The place at which the thread of this name panics, if a test has asked for it.
    pub fn fault_point(&self, name: &str) {
        #[cfg(feature = "faults")]
        self.0.faults.strike(name);
        #[cfg(not(feature = "faults"))]
        let _ = name;
    }

    /// The names of all tasks and threads that were started, in this order.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.faults.names()
    }

    /// Makes the task or thread of this name panic, a thread at its next [`Reporter::fault_point`]. Returns false if there is none.
    #[cfg(feature = "faults")]
    pub fn inject_fault(&self, name: &str) -> bool {
        self.0.faults.inject(name)
    }

    /// Marks the tasks as stopping: from now on their end is no failure.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Release);
    }

    /// Resolves with the first failure; pends forever if there is none.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        let shared = Arc::clone(&self.0);
        async move { shared.first.wait().await.clone() }
    }

    fn note(&self, task: Cow<'static, str>, ended: Result<(), Box<dyn Any + Send>>, may_end: bool) {
        let is_well = may_end || self.0.is_stopping.load(Ordering::Acquire);
        let cause = match ended {
            Ok(()) if is_well => None,
            Ok(()) => Some(Cause::Returned),
            Err(panic) => Some(Cause::Panicked(panic_text(&*panic).to_owned())),
        };
        if cause.is_some() {
            held(&self.0.failed).push(task.clone());
        }
        let mut running = held(&self.0.running);
        if let Some(place) = running.iter().position(|known| *known == task) {
            running.swap_remove(place);
        }
        drop(running);
        if let Some(cause) = cause {
            // Only the first failure is kept: later ones are often its consequence.
            let _ = self.0.first.set(TaskFailure { task, cause });
        }
    }
}

/// Locks a mutex and ignores poisoning: every critical section is a single step, so a panic leaves the state
/// consistent.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The message of a panic.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// Resumes the panic of a joined task in the caller. Returns `None` for an aborted task.
pub fn propagate<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(value) => Some(value),
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

#[cfg(test)]
mod tests;
