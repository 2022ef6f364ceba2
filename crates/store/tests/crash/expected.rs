//! Expected content of a database after a kill: everything that was acknowledged, and perhaps the pending
//! writes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::audit::Audit;
use crate::line::{Line, Op};
use crate::objects::Version;

/// The one object that all writers update. Its seed counts the updates.
pub const COUNTER: &str = "shared/counter";

/// The test's own record of a database.
#[derive(Debug)]
pub struct Expected {
    heads: BTreeMap<String, Version>,
    /// Pending operations of each writer. No two of them touch the same object, but for the counter.
    pending: BTreeMap<usize, Vec<Op>>,
    /// Every count that was written to the counter, with its revision if the test knows it.
    counted: BTreeMap<u64, Option<u64>>,
    /// The clock at the last audit.
    clock: u64,
    /// The revisions of acknowledged writes since then.
    acknowledged: BTreeSet<u64>,
    /// The newest mark that was acknowledged, and the newest that was tried.
    compacted: u64,
    compaction_tried: u64,
    /// Totals of the run.
    pub tally: Tally,
}

/// Coverage of a run.
#[derive(Debug, Default)]
pub struct Tally {
    /// Acknowledged transactions.
    pub acknowledged: usize,
    /// Transactions that happened, though the kill came before their acknowledgement.
    pub arrived: usize,
    /// Transactions that the kill prevented.
    pub lost: usize,
    /// Compactions that were acknowledged.
    pub compactions: usize,
    /// Compactions that the kill interrupted.
    pub interrupted: usize,
    /// Audits.
    pub audits: usize,
}

impl Default for Expected {
    /// An empty database: the clock starts at 1.
    fn default() -> Self {
        Self {
            heads: BTreeMap::new(),
            pending: BTreeMap::new(),
            counted: BTreeMap::new(),
            clock: 1,
            acknowledged: BTreeSet::new(),
            compacted: 0,
            compaction_tried: 0,
            tally: Tally::default(),
        }
    }
}

impl Expected {
    /// Records a line of a writer.
    pub fn note(&mut self, line: Line) {
        match line {
            Line::Try { writer, ops } => {
                if let [Op::Compact { through }] = ops[..] {
                    self.compaction_tried = self.compaction_tried.max(through);
                }
                assert_eq!(self.pending.insert(writer, ops), None, "a writer does one thing at a time");
            }
            Line::Done { writer, revisions } => {
                let ops = self.pending.remove(&writer).expect("only what was tried is acknowledged");
                self.acknowledge(ops, &revisions);
            }
            Line::Refused { writer } => {
                self.pending.remove(&writer).expect("only what was tried is refused");
            }
            Line::Opening | Line::Clock { .. } | Line::Head { .. } | Line::Ready => {
                panic!("{line} comes before the writes");
            }
        }
    }

    fn acknowledge(&mut self, ops: Vec<Op>, revisions: &[u64]) {
        if let [Op::Compact { through }] = ops[..] {
            self.compacted = self.compacted.max(through);
            self.tally.compactions += 1;
            return;
        }
        self.tally.acknowledged += 1;
        assert_eq!(ops.len(), revisions.len(), "one revision per write");
        assert!(revisions.windows(2).all(|pair| pair[1] == pair[0] + 1), "a batch is one piece of the log");
        for (op, &revision) in ops.into_iter().zip(revisions) {
            assert!(revision > self.clock, "{op} got {revision}, which was taken at {}", self.clock);
            assert!(self.acknowledged.insert(revision), "{op} got {revision}, which another write got too");
            if let Some(count) = counting(&op) {
                assert_eq!(self.counted.insert(count, Some(revision)), None, "{count} was counted twice");
            }
            self.apply(&op, revision);
        }
    }

    fn apply(&mut self, op: &Op, revision: u64) {
        match op {
            Op::Create { path, seed } => {
                let version = Version { revision, life: *seed, seed: *seed };
                self.replace(path, version);
            }
            Op::Update { path, seed, .. } => {
                let life = if path == COUNTER { 0 } else { self.heads[path].life };
                self.replace(path, Version { revision, life, seed: *seed });
            }
            Op::Delete { path, .. } => {
                self.heads.remove(path).expect("only what is there can be deleted");
            }
            Op::Compact { .. } => panic!("a compaction has no revision"),
        }
    }

    /// Acknowledgements for the counter may come in another order than its revisions.
    fn replace(&mut self, path: &str, version: Version) {
        let newer = self.heads.get(path).is_none_or(|known| known.revision < version.revision);
        assert!(newer || path == COUNTER, "{path} went back to {version:?}");
        if newer {
            self.heads.insert(path.to_owned(), version);
        }
    }

    /// Compares with the content that a new process found, and settles the pending operations as done or not.
    pub fn compare(&mut self, audit: &Audit) {
        let newest = self.acknowledged.last().copied().unwrap_or(self.clock);
        assert!(audit.current >= newest, "the clock went back from {newest} to {}", audit.current);
        let mut arrived = self.settle_counter(audit);
        for (_, ops) in std::mem::take(&mut self.pending) {
            match ops[..] {
                [Op::Compact { .. }] => self.tally.interrupted += 1,
                [ref op] if counting(op).is_some() => {}
                _ => arrived += self.settle(&ops, audit),
            }
        }
        assert_eq!(self.heads, audit.heads, "what was acknowledged, and what is there");
        let written = self.acknowledged.len() + arrived;
        let ticks = usize::try_from(audit.current - self.clock).expect("a small number");
        assert_eq!(ticks, written, "the clock has moved by one for each write");
        let marks = self.compacted..=self.compaction_tried;
        assert!(marks.contains(&audit.compacted), "the mark {} is outside of {marks:?}", audit.compacted);
        self.clock = audit.current;
        self.acknowledged.clear();
        self.tally.audits += 1;
    }

    /// Every count up to the last one was written once: by an acknowledged write or by a pending one.
    fn settle_counter(&mut self, audit: &Audit) -> usize {
        let Some(found) = audit.heads.get(COUNTER) else {
            assert_eq!(self.heads.get(COUNTER), None, "the counter is gone");
            return 0;
        };
        let tried: BTreeSet<_> = self.pending.values().flatten().filter_map(counting).collect();
        let mut arrived = 0;
        for count in 0..=found.seed {
            if let Entry::Vacant(place) = self.counted.entry(count) {
                assert!(tried.contains(&count), "nobody can have counted {count}");
                place.insert(None);
                arrived += 1;
            }
        }
        self.tally.arrived += arrived;
        let last = self.counted.keys().next_back();
        assert_eq!(last, Some(&found.seed), "the last count is the greatest");
        let known: Vec<_> = self.counted.values().flatten().collect();
        assert!(known.is_sorted_by(|a, b| a < b), "counts are in the order of their revisions");
        if self.heads.get(COUNTER).is_none_or(|known| known.seed < found.seed) {
            self.expect_new(COUNTER, found);
        }
        arrived
    }

    /// A pending transaction happened as a whole, or not at all. Returns the number of writes that happened.
    fn settle(&mut self, ops: &[Op], audit: &Audit) -> usize {
        let happened: BTreeSet<bool> = ops.iter().map(|op| self.happened(op, audit)).collect();
        assert_eq!(happened.len(), 1, "only a part of {ops:?} happened");
        if !happened.contains(&true) {
            self.tally.lost += 1;
            return 0;
        }
        self.tally.arrived += 1;
        for op in ops {
            match op {
                Op::Create { path, .. } | Op::Update { path, .. } => {
                    let found = audit.heads[path];
                    self.expect_new(path, &found);
                }
                Op::Delete { path, .. } => {
                    self.heads.remove(path);
                }
                Op::Compact { .. } => panic!("a compaction is alone"),
            }
        }
        ops.len()
    }

    fn happened(&self, op: &Op, audit: &Audit) -> bool {
        let (Op::Create { path, .. } | Op::Update { path, .. } | Op::Delete { path, .. }) = op else {
            panic!("a compaction is alone");
        };
        let (known, found) = (self.heads.get(path), audit.heads.get(path));
        if found == known {
            return false;
        }
        let (allowed, right) = match op {
            Op::Create { seed, .. } => {
                (known.is_none(), found.is_some_and(|version| version.seed == *seed && version.life == *seed))
            }
            Op::Update { expect, seed, .. } => (
                known.is_some_and(|version| version.revision == *expect),
                found.is_some_and(|version| {
                    version.seed == *seed && Some(version.life) == known.map(|known| known.life)
                }),
            ),
            Op::Delete { expect, .. } => {
                (known.is_some_and(|version| version.revision == *expect), found.is_none())
            }
            Op::Compact { .. } => (false, false),
        };
        assert!(right, "{path} was {known:?}, {op} was under way, and it is {found:?}");
        assert!(allowed, "{op} happened, though {path} was {known:?}");
        true
    }

    /// Records a version whose acknowledgement never came.
    fn expect_new(&mut self, path: &str, found: &Version) {
        let fresh = found.revision > self.clock && !self.acknowledged.contains(&found.revision);
        assert!(fresh, "{path} is at {}, which another write got", found.revision);
        self.heads.insert(path.to_owned(), *found);
    }
}

/// The count that an operation on the counter writes.
fn counting(op: &Op) -> Option<u64> {
    match op {
        Op::Create { path, seed } | Op::Update { path, seed, .. } if path == COUNTER => Some(*seed),
        _ => None,
    }
}
