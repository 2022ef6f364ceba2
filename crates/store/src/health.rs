//! The health of a store as its own tasks see it: asking for it costs no query.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::hub::held;

/// The state of the committer and the publisher, which they note as they work.
#[derive(Debug, Default)]
pub(crate) struct Health {
    commits_fail: AtomicBool,
    /// Since when the publisher has something to publish.
    behind_since: Mutex<Option<Instant>>,
}

impl Health {
    /// A commit has succeeded or failed.
    pub fn committed(&self, is_success: bool) {
        self.commits_fail.store(!is_success, Ordering::Relaxed);
    }

    /// Whether the last commit failed.
    pub fn commits_fail(&self) -> bool {
        self.commits_fail.load(Ordering::Relaxed)
    }

    /// There is something to publish.
    pub fn behind(&self) {
        held(&self.behind_since).get_or_insert_with(Instant::now);
    }

    /// Everything is published.
    pub fn caught_up(&self) {
        *held(&self.behind_since) = None;
    }

    /// For how long something has been waiting to be published.
    pub fn publisher_lag(&self) -> Duration {
        held(&self.behind_since).map_or(Duration::ZERO, |since| since.elapsed())
    }
}
