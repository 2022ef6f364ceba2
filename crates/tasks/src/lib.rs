//! Named background tasks with an owner: a task that ends early is reported with its name and reason.
//!
//! A component (a store, an API server, a controller manager) holds one [`Tasks`]. Its user decides what a [`TaskFailure`] means:
//! the binary exits, a test environment fails, an embedding program may ignore it.

use std::any::Any;
use std::borrow::Cow;
#[cfg(feature = "faults")]
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use thiserror::Error;
use tokio::sync::SetOnce;
use tokio::task::{JoinError, JoinSet};

/// A task ended although its owner had not stopped it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{task} {cause}; this is a defect of the program")]
pub struct TaskFailure {
    /// The name under which the task was started.
    pub task: Cow<'static, str>,
    /// How it ended.
    pub cause: Cause,
}

/// How a task ended early.
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

/// Tells the first failure among the tasks of one owner. Clones are the same; it keeps no task alive.
#[derive(Clone, Default)]
pub struct Reporter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    first: SetOnce<TaskFailure>,
    /// The names of all that failed.
    failed: Mutex<Vec<Cow<'static, str>>>,
    is_stopping: AtomicBool,
    #[cfg(feature = "faults")]
    faults: Mutex<Vec<(Cow<'static, str>, Arc<tokio::sync::Notify>)>>,
}

impl Tasks {
    /// Starts a task that runs until its owner stops. The name begins a sentence: "the compactor".
    pub fn start(&self, name: impl Into<Cow<'static, str>>, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name.into(), task, false);
    }

    /// Starts a task that may come to an end: only a panic is a failure.
    pub fn start_finite(
        &self,
        name: impl Into<Cow<'static, str>>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.spawn(name.into(), task, true);
    }

    fn spawn(&self, name: Cow<'static, str>, task: impl Future<Output = ()> + Send + 'static, may_end: bool) {
        let reporter = self.reporter.clone();
        #[cfg(feature = "faults")]
        let task = reporter.with_fault(name.clone(), task);
        let mut running = self.running();
        // Those that came to an end hold memory until they are joined.
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            let mut task = pin!(AssertUnwindSafe(task).catch_unwind());
            let ended = task.as_mut().await;
            // Reported before the task is dropped: tasks that end because its channels close are not the first failure.
            reporter.note(name, ended, may_end);
        });
    }

    /// From now on tasks may end: their owner has asked them to.
    pub fn stop(&self) {
        self.reporter.stop();
    }

    /// Waits until all tasks have ended.
    pub async fn join(&self) {
        let mut running = std::mem::take(&mut *self.running());
        while running.join_next().await.is_some() {}
    }

    /// Aborts all tasks and waits until they are gone.
    pub async fn abort(&self) {
        self.stop();
        let mut running = std::mem::take(&mut *self.running());
        running.shutdown().await;
    }

    /// Resolves with the first failure; never where there is none.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        self.reporter.failed()
    }

    /// The first failure so far.
    #[must_use]
    pub fn failure(&self) -> Option<TaskFailure> {
        self.reporter.0.first.get().cloned()
    }

    /// Whether the task of this name has ended early.
    #[must_use]
    pub fn has_failed(&self, name: &str) -> bool {
        held(&self.reporter.0.failed).iter().any(|failed| failed == name)
    }

    /// The reporter of failures, for threads.
    #[must_use]
    pub fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }

    /// The names of all tasks that were started, in this order.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        held(&self.reporter.0.faults).iter().map(|(name, _)| name.to_string()).collect()
    }

    /// Makes the task of this name panic. Says whether there is one.
    #[cfg(feature = "faults")]
    pub fn inject_fault(&self, name: &str) -> bool {
        let faults = held(&self.reporter.0.faults);
        let found = faults.iter().find(|(known, _)| known == name);
        found.inspect(|(_, fault)| fault.notify_one()).is_some()
    }

    fn running(&self) -> MutexGuard<'_, JoinSet<()>> {
        held(&self.running)
    }
}

impl Reporter {
    /// Runs the work of a thread that lasts until the owner stops; its early end is a failure.
    pub fn run(&self, name: &'static str, work: impl FnOnce()) {
        self.note(name.into(), catch_unwind(AssertUnwindSafe(work)), false);
    }

    /// From now on tasks may end: their owner has asked them to.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Release);
    }

    /// Resolves with the first failure; never where there is none.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        let shared = Arc::clone(&self.0);
        async move { shared.first.wait().await.clone() }
    }

    fn note(&self, task: Cow<'static, str>, ended: Result<(), Box<dyn Any + Send>>, may_end: bool) {
        let cause = match ended {
            Ok(()) if may_end || self.0.is_stopping.load(Ordering::Acquire) => return,
            Ok(()) => Cause::Returned,
            Err(panic) => Cause::Panicked(panic_text(&*panic).to_owned()),
        };
        held(&self.0.failed).push(task.clone());
        // Only the first is told: the others often follow from it.
        let _ = self.0.first.set(TaskFailure { task, cause });
    }

    #[cfg(feature = "faults")]
    fn with_fault(
        &self,
        name: Cow<'static, str>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let fault = Arc::new(tokio::sync::Notify::new());
        held(&self.0.faults).push((name, Arc::clone(&fault)));
        let mut fault = Box::pin(async move { fault.notified().await });
        let mut task = Box::pin(task);
        poll_fn(move |context| {
            assert!(fault.poll_unpin(context).is_pending(), "an injected fault");
            task.poll_unpin(context)
        })
    }
}

/// A panic elsewhere leaves these states whole: each is changed in single steps.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text of a panic.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// Passes the panic of a joined task on to the task that joined it. A task that was aborted has none.
pub fn propagate<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(value) => Some(value),
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

#[cfg(test)]
mod tests;
