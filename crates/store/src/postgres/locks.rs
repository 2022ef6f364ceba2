//! The advisory locks by which servers take turns. They belong to one database; the class keeps them apart from locks of
//! other programs there.

const CLASS: i32 = 1_869_769_840;

/// An advisory lock, as PostgreSQL's functions with two numbers name it.
#[derive(Clone, Copy)]
pub struct AdvisoryLock {
    /// The locks of this program.
    pub class: i32,
    /// The lock.
    pub key: i32,
}

/// Held while the tables are made or changed.
pub const MIGRATION: AdvisoryLock = AdvisoryLock { class: CLASS, key: 1 };

/// Held for each commit: its holder may append to the log.
pub const COMMIT: AdvisoryLock = AdvisoryLock { class: CLASS, key: 2 };

/// Held for each step of compaction.
pub const SWEEP: AdvisoryLock = AdvisoryLock { class: CLASS, key: 3 };

/// The statement that waits for a lock, and holds it to the end of the transaction.
pub fn wait_for(lock: AdvisoryLock) -> String {
    format!("SELECT pg_advisory_xact_lock({}, {})", lock.class, lock.key)
}
