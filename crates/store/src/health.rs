//! Health of a store, recorded by its own tasks: reading it costs no query.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::hub::held;

/// The state of the committer and the publisher, updated as they work.
#[derive(Debug, Default)]
pub(crate) struct Health {
    commits_fail: AtomicBool,
    /// Start of the publisher's present backlog.
    behind_since: Mutex<Option<Instant>>,
}

impl Health {
    /// Records the outcome of a commit.
    pub fn committed(&self, is_success: bool) {
        self.commits_fail.store(!is_success, Ordering::Relaxed);
    }

    /// Whether the last commit failed.
    pub fn commits_fail(&self) -> bool {
        self.commits_fail.load(Ordering::Relaxed)
    }

    /// Records that there are changes to publish.
    pub fn behind(&self) {
        held(&self.behind_since).get_or_insert_with(Instant::now);
    }

    /// Records that everything is published.
    pub fn caught_up(&self) {
        *held(&self.behind_since) = None;
    }

    /// Age of the oldest change that is not published.
    pub fn publisher_lag(&self) -> Duration {
        held(&self.behind_since).map_or(Duration::ZERO, |since| since.elapsed())
    }
}
