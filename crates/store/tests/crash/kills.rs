//! Kills at random moments, and the expected content afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::audit::{Audit, audit};
use crate::damage::refusal;
use crate::expected::Expected;
use crate::line::{Line, Op};
use crate::objects::{Dice, file, open};
use crate::process::{Heard, Orders, Process};

/// Number of kills in a run.
pub const KILLS: u64 = 160;

/// A writer that prints nothing for this long is stuck, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Moment of a kill. Each comes a random time later.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// At its start.
    Started,
    /// At the opening of the database.
    Opening,
    /// After this many acknowledgements.
    Acknowledged(u64),
    /// At the start of this many compactions.
    Compacting(u64),
}

impl Moment {
    fn random(round: u64, dice: &mut Dice, usual: Duration) -> (Self, Duration) {
        let moment = match round % 8 {
            0 => Self::Started,
            3 => Self::Opening,
            5 | 7 => Self::Compacting(1 + dice.roll(3)),
            _ => Self::Acknowledged(1 + dice.roll(120)),
        };
        let longest = match moment {
            Self::Started | Self::Opening => Duration::from_millis(30),
            Self::Compacting(_) => usual,
            Self::Acknowledged(_) => Duration::from_millis(3),
        };
        (moment, random_part(longest, dice))
    }

    /// Whether the moment has come, after a line.
    fn come(&mut self, line: &Line) -> bool {
        match (self, line) {
            (Self::Opening, Line::Opening) => true,
            (Self::Acknowledged(left), Line::Done { .. }) => count_down(left),
            (Self::Compacting(left), line) if compacts(line) => count_down(left),
            _ => false,
        }
    }
}

fn compacts(line: &Line) -> bool {
    matches!(line, Line::Try { ops, .. } if matches!(ops[..], [Op::Compact { .. }]))
}

fn count_down(left: &mut u64) -> bool {
    *left -= 1;
    *left == 0
}

fn random_part(longest: Duration, dice: &mut Dice) -> Duration {
    longest.mul_f64(dice.roll(1001) as f64 / 1000.0)
}

/// State gathered from the processes so far.
struct Told {
    expected: Expected,
    /// Approximate duration of a compaction.
    compaction: Duration,
}

impl Default for Told {
    fn default() -> Self {
        Self { expected: Expected::default(), compaction: Duration::from_millis(4) }
    }
}

/// Reads the lines of one process.
struct Hearing<'a> {
    told: &'a mut Told,
    /// Start of the present compaction of each writer.
    compacting: BTreeMap<usize, Instant>,
    /// The content that the process finds, until it is ready.
    found: Option<Audit>,
    ready: bool,
}

impl<'a> Hearing<'a> {
    fn new(told: &'a mut Told) -> Self {
        Self { told, compacting: BTreeMap::new(), found: None, ready: false }
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Opening => {}
            Line::Clock { current, compacted } => {
                self.found = Some(Audit { current, compacted, heads: Default::default() });
            }
            Line::Head { path, version } => {
                let found = self.found.as_mut().expect("the clock comes first");
                found.heads.insert(path, version);
            }
            Line::Ready => {
                let found = self.found.take().expect("the clock comes first");
                self.told.expected.compare(&found);
                self.ready = true;
            }
            line => {
                assert!(self.ready, "{line} comes before it is ready");
                self.time(&line);
                self.told.expected.note(line);
            }
        }
    }

    fn time(&mut self, line: &Line) {
        match line {
            Line::Try { writer, .. } if compacts(line) => {
                self.compacting.insert(*writer, Instant::now());
            }
            Line::Done { writer, .. } => {
                if let Some(began) = self.compacting.remove(writer) {
                    self.told.compaction = (self.told.compaction + began.elapsed()) / 2;
                }
            }
            _ => {}
        }
    }
}

/// Starts a writer, kills it at the moment, and processes every line that it printed.
fn kill_at(mut moment: Moment, delay: Duration, test: &str, orders: &Orders, told: &mut Told) {
    let mut process = Process::start(test, orders);
    let mut hearing = Hearing::new(told);
    if !matches!(moment, Moment::Started) {
        loop {
            let Heard::Line(line) = process.hear(Instant::now() + PATIENCE) else {
                panic!("the writer is stuck before {moment:?}");
            };
            let come = moment.come(&line);
            hearing.take(line);
            if come {
                break;
            }
        }
    }
    let deadline = Instant::now() + delay;
    while Instant::now() < deadline
        && let Heard::Line(line) = process.hear(deadline)
    {
        hearing.take(line);
    }
    process.kill().into_iter().for_each(|line| hearing.take(line));
}

/// Kills writers one after the other on the same database.
pub fn run(test: &str) {
    let tell = Seed::of_this_run();
    let mut dice = Dice(tell.0);
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let mut told = Told::default();
    let started = Instant::now();
    for round in 0..KILLS {
        let (moment, delay) = Moment::random(round, &mut dice, told.compaction);
        let orders = random_orders(folder.path(), round, &mut dice);
        kill_at(moment, delay, test, &orders, &mut told);
    }
    compare_here(folder.path(), &mut told.expected);
    let tally = &told.expected.tally;
    println!("{KILLS} kills in {:?}: {tally:?}", started.elapsed());
    assert!(tally.acknowledged > 1000 && tally.audits > 60, "the run covered little: {tally:?}");
    assert!(tally.arrived > 0 && tally.lost > 0, "no kill came during a write: {tally:?}");
    assert!(tally.compactions > 0 && tally.interrupted > 0, "no kill came during a compaction: {tally:?}");
}

/// Kills writers that create a database.
pub fn while_it_is_made(test: &str) {
    let tell = Seed::of_this_run();
    let mut dice = Dice(tell.0);
    for round in 0..16 {
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        let mut told = Told::default();
        let orders = random_orders(folder.path(), round, &mut dice);
        let delay = random_part(Duration::from_millis(20), &mut dice);
        kill_at(Moment::Opening, delay, test, &orders, &mut told);
        compare_here(folder.path(), &mut told.expected);
    }
}

/// Tries to open a database that a writer has open.
pub fn second_process(test: &str) {
    let tell = Seed::of_this_run();
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let mut told = Told::default();
    let orders = random_orders(folder.path(), 0, &mut Dice(tell.0));
    let mut process = Process::start(test, &orders);
    let mut hearing = Hearing::new(&mut told);
    for attempts in 0..20 {
        let Heard::Line(line) = process.hear(Instant::now() + PATIENCE) else {
            panic!("the first process is stuck after {attempts} attempts");
        };
        hearing.take(line);
        if hearing.ready {
            let reason = refusal(&file(folder.path()), "a file in use");
            assert!(reason.contains("is in use by another server: stop that one"), "{reason}");
        }
    }
    assert!(hearing.ready, "there was nothing to compete with");
    process.kill().into_iter().for_each(|line| hearing.take(line));
    compare_here(folder.path(), &mut told.expected);
}

fn random_orders(folder: &Path, round: u64, dice: &mut Dice) -> Orders {
    let checkpoint_pages = [20, 200, 4000][dice.roll(3) as usize];
    Orders { folder: folder.to_owned(), seed: dice.roll(u64::from(u32::MAX)), round, checkpoint_pages }
}

/// Opens the database in this process.
fn compare_here(folder: &Path, expected: &mut Expected) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let store = open(&file(folder)).await.expect("the database opens after every kill");
        expected.compare(&audit(&store).await);
        store.close().await;
    });
}

/// The seed of a run, printed when the run fails.
struct Seed(u64);

impl Seed {
    fn of_this_run() -> Self {
        let given = std::env::var("ORLOP_CRASH_SEED").ok();
        let random = || std::time::UNIX_EPOCH.elapsed().map_or(0, |since| u64::from(since.subsec_nanos()));
        Self(given.map_or_else(random, |seed| seed.parse().expect("ORLOP_CRASH_SEED is a number")))
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("The same moments again: ORLOP_CRASH_SEED={}", self.0);
        }
    }
}
