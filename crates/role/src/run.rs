//! Running a role: once, or supervised with restarts.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use controller::crds::{CrdError, CrdInstaller};
use futures::FutureExt;
use kube::Client;
use thiserror::Error;
use tokio::time::Instant;

use crate::{BoxError, Role, RoleContext};

/// The time before the first restart of a role; it doubles with each failure in a row.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest time before a restart.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// A role that has run for this long starts with the first delay again.
const STABLE: Duration = Duration::from_secs(600);

/// A role that ended before the stop request.
#[derive(Debug, Error)]
pub enum RoleFailure {
    /// The CRDs cannot be installed.
    #[error("cannot install the CRDs: {0}")]
    Crds(#[source] CrdError),
    /// The start function returned an error.
    #[error("{0}")]
    Failed(#[source] BoxError),
    /// The start function returned without a stop request.
    #[error("it ended although nothing had asked it to")]
    EndedEarly,
    /// The start function panicked.
    #[error("it panicked: {0}")]
    Panicked(String),
}

/// Installs the CRDs of a role with `installer`, and runs the role until the stop request.
///
/// # Errors
/// The role ended before the stop request.
pub async fn run(role: &Role, installer: &Client, context: RoleContext) -> Result<(), RoleFailure> {
    let shutdown = context.shutdown.clone();
    context.readiness.not_ready("the CRDs of the role are not installed yet");
    let crds = CrdInstaller::new(installer.clone(), role.account()).force();
    tokio::select! {
        installed = crds.install(role.crds()) => installed.map_err(RoleFailure::Crds)?,
        () = shutdown.requested() => return Ok(()),
    }
    let readiness = context.readiness.clone();
    readiness.not_ready("the role is starting");
    // The start function itself may panic before it returns its future.
    let running = async { role.start(context).await };
    let ended = AssertUnwindSafe(running).catch_unwind().await;
    readiness.not_ready("the role has ended");
    match ended {
        Err(panic) => Err(RoleFailure::Panicked(tasks::panic_text(&*panic).to_owned())),
        Ok(Err(error)) => Err(RoleFailure::Failed(error)),
        Ok(Ok(())) if shutdown.is_requested() => Ok(()),
        Ok(Ok(())) => Err(RoleFailure::EndedEarly),
    }
}

/// Runs a role until the stop request, and starts it again after a failure, with exponential backoff. A failing role does not affect the
/// server: its check in `/readyz` fails meanwhile.
pub async fn supervise(role: Role, installer: Client, context: RoleContext) {
    let mut delay = FIRST_DELAY;
    while !context.shutdown.is_requested() {
        let started = Instant::now();
        let Err(error) = run(&role, &installer, context.clone()).await else { return };
        if started.elapsed() >= STABLE {
            delay = FIRST_DELAY;
        }
        tracing::error!(role = role.name(), %error, retry_in = ?delay, "the role failed; restarting");
        context.readiness.not_ready("the role failed and will be restarted");
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = context.shutdown.requested() => return,
        }
        delay = (delay * 2).min(LONGEST_DELAY);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use process::Shutdown;

    use super::*;
    use crate::Readiness;

    fn context() -> RoleContext {
        let nowhere = kube::Config::new(http::Uri::from_static("http://[::1]:9"));
        RoleContext {
            client: Client::try_from(nowhere).unwrap(),
            shutdown: Shutdown::new(),
            readiness: Readiness::default(),
            queue_metrics: controller::Metrics::default(),
            instance: "test".to_owned(),
        }
    }

    /// A role that fails in three ways, and works at the fourth start.
    fn failing(starts: &Arc<AtomicUsize>) -> Role {
        let starts = Arc::clone(starts);
        Role::new("failing", move |context: RoleContext| {
            let start = starts.fetch_add(1, Ordering::SeqCst);
            async move {
                match start {
                    0 => Err("no connection".into()),
                    1 => panic!("a defect"),
                    2 => Ok(()),
                    _ => {
                        context.readiness.ready();
                        context.shutdown.requested().await;
                        Ok(())
                    }
                }
            }
        })
    }

    #[tokio::test]
    async fn an_early_end_is_a_failure_with_its_reason() {
        let (role, context) = (failing(&Arc::default()), context());
        for expected in
            ["no connection", "it panicked: a defect", "it ended although nothing had asked it to"]
        {
            let failure = run(&role, &context.client, context.clone()).await.unwrap_err();
            assert_eq!(failure.to_string(), expected);
            assert_eq!(context.readiness.check(), Err("the role has ended".to_owned()));
        }
        context.shutdown.request();
        run(&role, &context.client, context.clone()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_role_that_fails_is_started_again_until_it_works() {
        let (starts, context) = (Arc::default(), context());
        let (role, before) = (failing(&starts), Instant::now());
        let supervised = supervise(role, context.client.clone(), context.clone());
        let stopped = async {
            while context.readiness.check().is_err() {
                tokio::task::yield_now().await;
                tokio::time::advance(FIRST_DELAY / 10).await;
            }
            context.shutdown.request();
        };
        tokio::join!(supervised, stopped);
        assert_eq!(starts.load(Ordering::SeqCst), 4);
        assert!(before.elapsed() >= FIRST_DELAY * 7, "the delay doubles: {:?}", before.elapsed());
    }
}
