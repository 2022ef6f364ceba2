//! The owner of a process's long-running tasks: no task outlives it, and an early end is a failure.

use std::{collections::HashMap, time::Duration};

use thiserror::Error;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout_at},
};

use crate::Shutdown;

/// The time that tasks have to end after a stop request.
///
/// A process should exit within a second. The rest of that second is for the steps after the tasks: the
/// database's last page, the last spans to the collector, the exit itself.
pub const GRACE: Duration = Duration::from_millis(750);

/// The error of a task. The process only prints it.
pub type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// A task ended before a stop was requested.
#[derive(Debug, Error)]
pub enum Failure {
    /// The task returned an error.
    #[error("{task} failed: {reason}")]
    Failed {
        /// The name under which the task was started.
        task: &'static str,
        /// The error.
        #[source]
        reason: TaskError,
    },
    /// The task returned without a stop request.
    #[error("{task} ended although nothing had asked it to; this is a defect of the program")]
    EndedEarly {
        /// The name under which the task was started.
        task: &'static str,
    },
    /// The task panicked.
    #[error("{task} panicked: {message}; this is a defect of the program")]
    Panicked {
        /// The name under which the task was started.
        task: &'static str,
        /// The message of the panic.
        message: String,
    },
}

/// Owns named tasks and stops all of them when one ends early.
///
/// Dropping it aborts every task that still runs.
#[derive(Debug)]
pub struct Supervisor {
    tasks: JoinSet<Result<(), TaskError>>,
    names: HashMap<Id, &'static str>,
    shutdown: Shutdown,
    grace: Duration,
    #[cfg(feature = "faults")]
    faults: tasks::Faults,
}

impl Supervisor {
    /// A supervisor whose tasks run until `shutdown` is requested.
    #[must_use]
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            tasks: JoinSet::new(),
            names: HashMap::new(),
            shutdown,
            grace: GRACE,
            #[cfg(feature = "faults")]
            faults: tasks::Faults::default(),
        }
    }

    /// Sets another grace period than [`GRACE`].
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The token that stops the tasks of this supervisor.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Starts a task that runs until a stop is requested. The name starts an error message: "the compactor".
    pub fn start<E: Into<TaskError>>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let task = async move { task.await.map_err(Into::into) };
        #[cfg(feature = "faults")]
        let task = self.faults.wrap(name, task);
        let handle = self.tasks.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Fails when a component fails: `failed` resolves with the reason when one of the component's tasks has
    /// ended early.
    pub fn watch<E: Into<TaskError>>(
        &mut self,
        name: &'static str,
        failed: impl Future<Output = E> + Send + 'static,
    ) {
        let requested = self.shutdown.requested();
        self.start(name, async {
            tokio::select! {
                reason = failed => Err(reason),
                () = requested => Ok(()),
            }
        });
    }

    /// The names of all tasks that were started, in this order.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn task_names(&self) -> Vec<String> {
        self.faults.names()
    }

    /// Makes the task of this name panic. Returns false if there is none.
    #[cfg(feature = "faults")]
    pub fn inject_fault(&self, name: &str) -> bool {
        self.faults.inject(name)
    }

    /// Runs until a stop is requested or a task ends early, then stops all tasks and returns.
    ///
    /// # Errors
    /// The first task that ended before the request, or failed while stopping.
    pub async fn run(mut self) -> Result<(), Failure> {
        let early = tokio::select! {
            () = self.shutdown.requested() => Ok(()),
            Some(ended) = self.tasks.join_next_with_id() => {
                let (task, outcome) = self.outcome(ended);
                // A task may see the stop request, or make it, and end before this is polled.
                let in_order = self.shutdown.is_requested();
                outcome.and(if in_order { Ok(()) } else { Err(Failure::EndedEarly { task }) })
            }
        };
        self.shutdown.request();
        let late = self.drain().await;
        early.and(late)
    }

    /// Waits for the remaining tasks until the deadline, then aborts them.
    async fn drain(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + self.grace;
        let mut result = Ok(());
        while let Ok(next) = timeout_at(deadline, self.tasks.join_next_with_id()).await {
            let Some(ended) = next else { return result };
            let (_, outcome) = self.outcome(ended);
            result = result.and(outcome);
        }
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            let (task, _) = self.outcome(ended);
            tracing::warn!(task, grace = ?self.grace, "aborted a task that did not stop in time");
        }
        result
    }

    fn outcome(
        &self,
        ended: Result<(Id, Result<(), TaskError>), JoinError>,
    ) -> (&'static str, Result<(), Failure>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let task = self.names.get(&id).copied().expect("every task was named when it was started");
        let outcome = match ended {
            Ok((_, Ok(()))) => Ok(()),
            Ok((_, Err(reason))) => Err(Failure::Failed { task, reason }),
            Err(error) => Err(Failure::Panicked { task, message: panic_text(error) }),
        };
        (task, outcome)
    }
}

fn panic_text(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => tasks::panic_text(&*payload).to_owned(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    async fn until(shutdown: Shutdown) -> io::Result<()> {
        shutdown.requested().await;
        Ok(())
    }

    async fn forever() -> io::Result<()> {
        std::future::pending().await
    }

    fn supervisor() -> Supervisor {
        let mut supervisor = Supervisor::new(Shutdown::new());
        let shutdown = supervisor.shutdown();
        supervisor.start("the obedient task", until(shutdown));
        supervisor
    }

    #[tokio::test]
    async fn a_requested_stop_is_a_success() {
        let supervisor = supervisor();
        supervisor.shutdown().request();
        supervisor.run().await.unwrap();
    }

    #[tokio::test]
    async fn a_task_may_request_the_stop_itself() {
        let mut supervisor = supervisor();
        let shutdown = supervisor.shutdown();
        supervisor.start("the signal handler", async move {
            shutdown.request();
            io::Result::Ok(())
        });
        supervisor.run().await.unwrap();
    }

    #[tokio::test]
    async fn a_task_that_fails_ends_the_others_and_gives_its_reason() {
        let mut supervisor = supervisor();
        supervisor.start("the listener", async { Err(io::Error::other("no more sockets")) });
        let failure = supervisor.run().await.unwrap_err();
        assert_eq!(failure.to_string(), "the listener failed: no more sockets");
    }

    #[tokio::test]
    async fn a_task_that_returns_early_is_a_failure() {
        let mut supervisor = supervisor();
        supervisor.start("the poller", async { io::Result::Ok(()) });
        let failure = supervisor.run().await.unwrap_err();
        assert!(matches!(failure, Failure::EndedEarly { task: "the poller" }), "{failure}");
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_with_its_text() {
        let mut supervisor = supervisor();
        let number = 7;
        supervisor.start::<io::Error>("the counter", async move { panic!("{number} is odd") });
        let failure = supervisor.run().await.unwrap_err();
        assert!(
            matches!(failure, Failure::Panicked { ref message, .. } if message == "7 is odd"),
            "{failure}"
        );
    }

    #[tokio::test]
    async fn a_component_that_fails_ends_the_others_and_one_that_does_not_ends_with_them() {
        let mut failing = supervisor();
        failing.watch("the store", std::future::pending::<io::Error>());
        failing.watch("the API server", async { io::Error::other("the informer panicked") });
        assert_eq!(
            failing.run().await.unwrap_err().to_string(),
            "the API server failed: the informer panicked"
        );

        let mut sound = supervisor();
        sound.watch("the store", std::future::pending::<io::Error>());
        sound.shutdown().request();
        sound.run().await.unwrap();
    }

    #[tokio::test]
    async fn a_task_that_fails_while_stopping_is_reported() {
        let mut supervisor = supervisor();
        let requested = supervisor.shutdown().requested();
        supervisor.start("the writer", async {
            requested.await;
            Err(io::Error::other("disk full"))
        });
        supervisor.shutdown().request();
        assert_eq!(supervisor.run().await.unwrap_err().to_string(), "the writer failed: disk full");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_stop_is_aborted_after_the_grace_time() {
        let mut supervisor = supervisor();
        supervisor.start("the deaf task", forever());
        supervisor.shutdown().request();
        let before = Instant::now();
        supervisor.run().await.unwrap();
        let waited = before.elapsed();
        assert!(waited >= GRACE && waited < GRACE * 2, "{waited:?}");
    }
}
