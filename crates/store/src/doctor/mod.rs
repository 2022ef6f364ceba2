//! Invariants of a database, checked without changing it.
//!
//! Most checks are queries for violations that both engines understand. The index is computed again from the
//! labels and fields of every head. Each finding comes with advice.

mod postgres;
mod queries;
mod sqlite;

pub use postgres::postgres;
pub use sqlite::sqlite;

use model::Attributes;

use crate::plan::{Entry, entries_of};

/// The advice where data is lost or contradicts itself.
pub(crate) const RESTORE: &str =
    "restore the last backup (`orlop restore`), keep a copy of this database for the bug report";

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    /// The finding, with examples.
    pub problem: String,
    /// Advice to the operator.
    pub remedy: &'static str,
}

/// The result of all checks.
#[derive(Debug, Default)]
pub struct Report {
    /// The names of the checks that ran.
    pub checks: Vec<&'static str>,
    /// Their findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Records a check with its findings: the first few examples of them.
    pub(crate) fn note(&mut self, check: &'static str, remedy: &'static str, mut found: Vec<String>) {
        self.checks.push(check);
        if found.is_empty() {
            return;
        }
        if found.len() > EXAMPLES {
            found.truncate(EXAMPLES);
            found.push("and more".to_owned());
        }
        self.findings.push(Finding { check, problem: found.join("; "), remedy });
    }
}

/// Number of offenders of a check that are named.
const EXAMPLES: usize = 3;

/// The check of the index.
const INDEX: &str = "the index has exactly the labels and fields of the objects";

/// Counts entries of the index against the heads that they come from.
#[derive(Debug, Default)]
struct IndexCheck {
    expected: i64,
    missing: Vec<String>,
}

impl IndexCheck {
    /// The entries that a head must have.
    fn entries(&mut self, attributes: &Attributes) -> Vec<Entry> {
        let entries = entries_of(attributes);
        self.expected += i64::try_from(entries.len()).unwrap_or(i64::MAX);
        entries
    }

    fn miss(&mut self, object: &str, entry: &Entry) {
        if self.missing.len() <= EXAMPLES {
            self.missing.push(format!("{object} is not found by its label or field {}", entry.key));
        }
    }

    fn finish(mut self, actual: i64, report: &mut Report) {
        if self.missing.is_empty() && actual != self.expected {
            self.missing.push(format!("{actual} entries, and the objects have {}", self.expected));
        }
        report.note(INDEX, RESTORE, self.missing);
    }
}

#[cfg(test)]
#[cfg(feature = "conformance")]
mod tests;
