//! Lines that a writer process prints on its standard output.

use std::fmt;

use crate::objects::Version;

/// One write of a transaction, or a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A new object.
    Create { path: String, seed: u64 },
    /// Replaces the version with revision `expect`.
    Update { path: String, expect: u64, seed: u64 },
    /// Deletes the version with revision `expect`.
    Delete { path: String, expect: u64 },
    /// A compaction, alone in its transaction.
    Compact { through: u64 },
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The process runs, and is about to open the database.
    Opening,
    /// The clock that it found.
    Clock { current: u64, compacted: u64 },
    /// An object that it found.
    Head { path: String, version: Version },
    /// The whole content was printed and is consistent; writing begins.
    Ready,
    /// A writer is about to run these operations.
    Try { writer: usize, ops: Vec<Op> },
    /// The store acknowledged the writer's operations; one revision per write.
    Done { writer: usize, revisions: Vec<u64> },
    /// The store refused the writer's operations, because a precondition did not hold.
    Refused { writer: usize },
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { path, seed } => write!(f, "create {path} {seed}"),
            Self::Update { path, expect, seed } => write!(f, "update {path} {expect} {seed}"),
            Self::Delete { path, expect } => write!(f, "delete {path} {expect}"),
            Self::Compact { through } => write!(f, "compact {through}"),
        }
    }
}

/// Lines begin with `@`, because the test harness has lines of its own.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening => f.write_str("@opening"),
            Self::Clock { current, compacted } => write!(f, "@clock {current} {compacted}"),
            Self::Head { path, version: Version { revision, life, seed } } => {
                write!(f, "@head {path} {revision} {life} {seed}")
            }
            Self::Ready => f.write_str("@ready"),
            Self::Try { writer, ops } => {
                let ops: Vec<_> = ops.iter().map(Op::to_string).collect();
                write!(f, "@try {writer} {}", ops.join(" ; "))
            }
            Self::Done { writer, revisions } => {
                write!(f, "@done {writer}")?;
                revisions.iter().try_for_each(|revision| write!(f, " {revision}"))
            }
            Self::Refused { writer } => write!(f, "@refused {writer}"),
        }
    }
}

impl Line {
    /// Parses a whole line; `None` if it belongs to the test harness.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.strip_prefix('@')?;
        let mut words = Words(words.split_whitespace());
        Some(match words.text()?.as_str() {
            "opening" => Self::Opening,
            "clock" => Self::Clock { current: words.number()?, compacted: words.number()? },
            "head" => Self::Head { path: words.text()?, version: words.version()? },
            "ready" => Self::Ready,
            "try" => Self::Try { writer: words.writer()?, ops: words.ops()? },
            "done" => Self::Done { writer: words.writer()?, revisions: words.numbers()? },
            "refused" => Self::Refused { writer: words.writer()? },
            _ => return None,
        })
    }
}

struct Words<'a>(std::str::SplitWhitespace<'a>);

impl Words<'_> {
    fn text(&mut self) -> Option<String> {
        self.0.next().map(str::to_owned)
    }

    fn number(&mut self) -> Option<u64> {
        self.0.next()?.parse().ok()
    }

    fn writer(&mut self) -> Option<usize> {
        self.0.next()?.parse().ok()
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        self.0.by_ref().map(|word| word.parse().ok()).collect()
    }

    fn version(&mut self) -> Option<Version> {
        Some(Version { revision: self.number()?, life: self.number()?, seed: self.number()? })
    }

    fn ops(&mut self) -> Option<Vec<Op>> {
        let mut ops = Vec::new();
        loop {
            ops.push(match self.text()?.as_str() {
                "create" => Op::Create { path: self.text()?, seed: self.number()? },
                "update" => Op::Update { path: self.text()?, expect: self.number()?, seed: self.number()? },
                "delete" => Op::Delete { path: self.text()?, expect: self.number()? },
                "compact" => Op::Compact { through: self.number()? },
                _ => return None,
            });
            match self.0.next() {
                Some(";") => {}
                None => return Some(ops),
                Some(_) => return None,
            }
        }
    }
}
