//! The process that is killed: several writers on one store, which print their operations and the
//! acknowledgements.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;

use store::{Error, Store, Write};
use tokio::task::JoinSet;

use crate::audit::audit;
use crate::expected::COUNTER;
use crate::line::{Line, Op};
use crate::objects::{Dice, Version, create, delete, file, key, open, update};
use crate::process::Orders;

/// They meet in the committer, so that one commit holds writes of several.
const WRITERS: usize = 6;

/// Objects of each writer, over all namespaces.
const OBJECTS: usize = 9;

/// Writes until it is killed.
pub fn run(orders: &Orders) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        // The harness has begun a line.
        println!();
        say(&Line::Opening);
        let mut options = file(&orders.folder);
        options.checkpoint_pages = orders.checkpoint_pages;
        let store = open(&options).await.expect("the database opens after every kill");
        let found = audit(&store).await;
        say(&Line::Clock { current: found.current, compacted: found.compacted });
        for (path, version) in &found.heads {
            say(&Line::Head { path: path.clone(), version: *version });
        }
        say(&Line::Ready);
        if !found.heads.contains_key(COUNTER) {
            let op = Op::Create { path: COUNTER.to_owned(), seed: 0 };
            attempt(&store, 0, vec![op], vec![create(COUNTER, 0)]).await.expect("nobody else creates it");
        }
        let mut writers = JoinSet::new();
        for id in 0..WRITERS {
            let mut writer = Writer::new(id, orders, store.clone(), &found.heads);
            writers.spawn(async move {
                loop {
                    writer.step().await;
                }
            });
        }
        let ended: Result<(), _> = writers.join_next().await.expect("there are writers");
        ended.expect("a writer goes on for ever");
    });
}

/// Prints one line, at once and whole.
fn say(line: &Line) {
    static OUT: Mutex<()> = Mutex::new(());
    let _turn = OUT.lock().expect("nobody panics while speaking");
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).expect("somebody listens");
}

/// Announces, writes, and prints the outcome; `None` if it was refused.
async fn attempt(store: &Store, writer: usize, ops: Vec<Op>, writes: Vec<Write>) -> Option<Vec<u64>> {
    say(&Line::Try { writer, ops });
    match store.write(writes).await {
        Ok(written) => {
            let revisions: Vec<_> = written.iter().map(|written| written.revision.0).collect();
            say(&Line::Done { writer, revisions: revisions.clone() });
            Some(revisions)
        }
        Err(Error::Conflict { .. }) => {
            say(&Line::Refused { writer });
            None
        }
        Err(error) => panic!("a write failed: {error}"),
    }
}

struct Writer {
    id: usize,
    store: Store,
    dice: Dice,
    /// No two writes of a run have the same one.
    next_seed: u64,
    /// Its own objects, and their state.
    mine: BTreeMap<String, Option<Version>>,
}

impl Writer {
    fn new(id: usize, orders: &Orders, store: Store, heads: &BTreeMap<String, Version>) -> Self {
        let paths = (0..OBJECTS).map(|n| format!("n{}/w{id}-o{n}", n % 3));
        Self {
            id,
            store,
            dice: Dice(orders.seed ^ (id as u64) << 48),
            next_seed: (orders.round + 1) << 32 | (id as u64) << 24,
            mine: paths.map(|path| (path.clone(), heads.get(&path).copied())).collect(),
        }
    }

    async fn step(&mut self) {
        match self.dice.roll(40) {
            0 => self.compact().await,
            1..=5 => self.count().await,
            6..=7 => self.stale().await,
            8..=15 => {
                let count = 2 + self.dice.roll(5) as usize;
                self.change(count).await;
            }
            _ => self.change(1).await,
        }
    }

    /// A transaction of `count` writes, each to another object.
    async fn change(&mut self, count: usize) {
        let mut paths: Vec<_> = self.mine.keys().cloned().collect();
        let (mut ops, mut writes, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let path = paths.swap_remove(self.dice.roll(paths.len() as u64) as usize);
            let (op, write, version) = self.draft(path.clone());
            ops.push(op);
            writes.push(write);
            after.push((path, version));
        }
        let revisions = attempt(&self.store, self.id, ops, writes).await;
        let revisions = revisions.expect("nobody else writes these objects");
        for ((path, version), revision) in after.into_iter().zip(revisions) {
            self.mine.insert(path, version.map(|version| Version { revision, ..version }));
        }
    }

    /// An operation on an object, and its resulting state.
    fn draft(&mut self, path: String) -> (Op, Write, Option<Version>) {
        let seed = self.fresh();
        match self.mine[&path] {
            None => {
                let write = create(&path, seed);
                (Op::Create { path, seed }, write, Some(Version { revision: 0, life: seed, seed }))
            }
            Some(Version { revision: expect, life, seed: last }) if self.dice.roll(3) == 0 => {
                let write = delete(&path, life, expect, last);
                (Op::Delete { path, expect }, write, None)
            }
            Some(Version { revision: expect, life, .. }) => {
                let write = update(&path, life, expect, seed);
                (Op::Update { path, expect, seed }, write, Some(Version { revision: 0, life, seed }))
            }
        }
    }

    /// A compare-and-swap that has to be refused, in a batch with a write that is allowed.
    async fn stale(&mut self) {
        let known = self.mine.iter().filter_map(|(path, version)| Some((path.clone(), (*version)?)));
        let known: Vec<_> = known.take(2).collect();
        let [(first, head), (second, other)] = &known[..] else { return };
        let (seed, expect) = (self.fresh(), other.revision - 1);
        let ops = vec![
            Op::Update { path: first.clone(), expect: head.revision, seed },
            Op::Update { path: second.clone(), expect, seed },
        ];
        let writes =
            vec![update(first, head.life, head.revision, seed), update(second, other.life, expect, seed)];
        let revisions = attempt(&self.store, self.id, ops, writes).await;
        assert_eq!(revisions, None, "an update of an older version was accepted");
    }

    /// Adds one to the counter, in competition with all other writers.
    async fn count(&mut self) {
        let path = COUNTER.to_owned();
        let stored = self.store.get(&key(COUNTER), None).await.expect("the counter is readable");
        let head = Version::stored(&stored.expect("the counter is never deleted"));
        let (expect, seed) = (head.revision, head.seed + 1);
        let write = update(COUNTER, head.life, expect, seed);
        // Refused if another writer was faster.
        let _ = attempt(&self.store, self.id, vec![Op::Update { path, expect, seed }], vec![write]).await;
    }

    async fn compact(&mut self) {
        let current = self.store.clock().await.expect("the clock is readable").current;
        let through = model::Revision(current.0.saturating_sub(self.dice.roll(80)));
        say(&Line::Try { writer: self.id, ops: vec![Op::Compact { through: through.0 }] });
        self.store.compact(through).await.expect("the log is compacted");
        say(&Line::Done { writer: self.id, revisions: Vec::new() });
    }

    fn fresh(&mut self) -> u64 {
        self.next_seed += 1;
        self.next_seed
    }
}
