//! The watches that a publication woke, rung a few at a time.

use std::sync::Arc;

use super::topic::Subscription;

/// Watches that are rung before other tasks get a turn. Each wakes a task that encrypts and sends; thousands of watches of one object
/// would otherwise stand before every request in the queue of the runtime.
const AT_ONCE: usize = 64;

/// Watches that have something to read and do not know it yet. All of them are rung, at the latest when this is dropped.
#[derive(Default)]
#[must_use]
pub(crate) struct Bells(pub(super) Vec<Arc<Subscription>>);

impl Bells {
    /// Rings all watches, and lets other tasks run in between.
    pub async fn ring(mut self) {
        while self.0.len() > AT_ONCE {
            let rest = self.0.len() - AT_ONCE;
            ring(self.0.drain(rest..));
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        ring(self.0.drain(..));
    }
}

fn ring(subscriptions: impl Iterator<Item = Arc<Subscription>>) {
    subscriptions.for_each(|subscription| subscription.ring());
}
