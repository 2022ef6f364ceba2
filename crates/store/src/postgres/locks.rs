//! The advisory locks by which servers take turns. They belong to one database; the first number keeps them apart from locks
//! of other programs there.

const OURS: i32 = 1_869_769_840;

/// Held while the tables are made or changed.
pub const MIGRATION: (i32, i32) = (OURS, 1);

/// Held for each commit: who has it may append to the log.
pub const COMMIT: (i32, i32) = (OURS, 2);

/// Held for each step of compaction.
pub const SWEEP: (i32, i32) = (OURS, 3);

/// The statement that waits for a lock, and holds it to the end of the transaction.
pub fn wait_for((class, lock): (i32, i32)) -> String {
    format!("SELECT pg_advisory_xact_lock({class}, {lock})")
}
