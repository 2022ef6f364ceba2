//! The shutdown token that every task of a process waits on, and the signals that trigger it.

use std::{io, sync::Arc};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// A stop request that is made once and seen by every clone.
///
/// A server takes the token from its caller instead of handling signals itself, so that a process can run
/// many servers and stop each of them separately.
#[derive(Clone, Debug)]
pub struct Shutdown {
    requested: Arc<watch::Sender<bool>>,
}

impl Shutdown {
    /// A token without a request.
    #[must_use]
    pub fn new() -> Self {
        Self { requested: Arc::new(watch::Sender::new(false)) }
    }

    /// Requests the stop of everything that waits on this token, now or later. Further requests have no
    /// effect.
    pub fn request(&self) {
        self.requested.send_replace(true);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.requested.borrow()
    }

    /// Waits until a stop is requested. The future borrows nothing, so a task can keep it across a `select!`
    /// loop.
    pub fn requested(&self) -> impl Future<Output = ()> + Send + 'static {
        let sender = Arc::clone(&self.requested);
        let mut receiver = sender.subscribe();
        async move {
            // The future holds a sender, so the channel cannot be closed while it waits.
            let _ = receiver.wait_for(|requested| *requested).await;
            drop(sender);
        }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

/// The signals SIGINT and SIGTERM.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

/// Installs the handlers of SIGINT and SIGTERM: from now on no signal is lost, even if it comes before
/// [`StopSignals::received`].
///
/// # Errors
/// When the operating system refuses the handler.
pub fn signals() -> io::Result<StopSignals> {
    Ok(StopSignals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
    })
}

impl StopSignals {
    /// Waits for the next signal and returns its name.
    pub async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_clone_sees_a_request_whether_it_waited_before_or_comes_later() {
        let shutdown = Shutdown::new();
        let early = shutdown.clone().requested();
        assert!(!shutdown.is_requested());

        shutdown.clone().request();
        shutdown.request();

        early.await;
        shutdown.requested().await;
        assert!(shutdown.is_requested());
    }

    #[tokio::test]
    async fn a_waiter_outlives_the_token_it_came_from() {
        let shutdown = Shutdown::new();
        let mut waiter = std::pin::pin!(shutdown.requested());
        drop(shutdown);
        let waited = is_ready(waiter.as_mut()).await;
        assert!(!waited, "a dropped token is not a request to stop");
    }

    async fn is_ready(mut future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_ready())).await
    }
}
