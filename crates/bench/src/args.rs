//! The command line, and what follows from it: how much of everything is measured.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use regex::Regex;

/// Measures the store and the API beside the machine's own limits, and beside Kubernetes if it is given.
///
/// Every figure stands in one table beside what the machine itself can do, measured in the same run: raw SQLite and
/// PostgreSQL commits without our schema, raw TLS answers without our server. So the ratio means something on any
/// machine, also on a busy one. Progress goes to standard error, the table (Markdown) to standard output.
///
/// Databases are made in the temporary folder and removed at the end. Set TMPDIR to measure another disk, and do set
/// it where the temporary folder is in memory, for there a commit costs nothing.
#[derive(Debug, Parser)]
#[command(name = "bench", after_long_help = EXAMPLES)]
pub struct Args {
    /// Only measures of which "MEASURE / ENGINE" matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<Regex>,

    /// Attack a server on loopback instead, and show its memory and what a healthy client feels; --only selects attacks
    #[arg(long)]
    pub attack: bool,

    /// Small counts and short times: shows that everything works, its figures mean little
    #[arg(long)]
    pub quick: bool,

    /// Do the same work on the kube-apiserver and etcd of this folder, and show the ratio
    #[arg(long, value_name = "ASSETS")]
    pub kubernetes: Option<PathBuf>,

    /// Use this PostgreSQL server instead of starting a private one; databases are created in it and dropped again
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,

    /// The server to measure, instead of building and using the one of this workspace
    #[arg(long, value_name = "PATH")]
    pub orlop: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Measures:
  store ...   memory per idle watcher; create with 1, 64 and 256 writers; update with compare-and-swap;
              list in pages and as one stream; select one of a million by label and by field;
              watch fan-out; writers beside idle and slow watchers; watch lag in a store and across two
  model ...   decode, default and validate a Pod; write it as protobuf
  api ...     start and idle memory; create and get, one client and 64 in flight; list in pages and whole;
              create, get and list of Pods as JSON and as protobuf; a thousand CRDs;
              watch fan-out; watch lag in a server and across two; memory per idle watcher
Engines:
  SQLite file, SQLite memory, PostgreSQL

Examples:
  bench                                      everything but Kubernetes: about ten minutes
  bench --kubernetes /path/to/assets         everything
  bench --quick                              a minute or two
  bench --only 'store create'                only creates at the store, on every engine
  bench --only '^store.*SQLite memory'       everything at the store, in memory
  bench --only 'api start|idle'              start-up and idle memory
  bench --attack                             slow, stalled and flooding clients: about five minutes";

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// How long a stretch of load lasts.
    pub stretch: Duration,
    /// How often limit and figure are measured in turn; the median counts.
    pub rounds: usize,
    /// Objects of a list at the store.
    pub list: usize,
    /// Objects of the short and of the long list at the API.
    pub api_lists: [usize; 2],
    /// Pods of a list.
    pub pods: usize,
    /// Definitions of custom resources.
    pub definitions: usize,
    /// Objects that are deleted with another.
    pub deletions: usize,
    /// Objects among which one is selected.
    pub select: usize,
    /// Watches that get every event.
    pub watchers: usize,
    /// Events for each of them.
    pub events: usize,
    /// Writes whose lag is taken.
    pub lags: usize,
    /// Starts of a server.
    pub starts: usize,
}

impl Sizes {
    /// For figures.
    pub const FULL: Self = Self {
        stretch: Duration::from_secs(1),
        rounds: 3,
        list: 100_000,
        api_lists: [10_000, 100_000],
        pods: 5_000,
        definitions: 1_000,
        deletions: 10_000,
        select: 1_000_000,
        watchers: 1_000,
        events: 2_000,
        lags: 1_000,
        starts: 20,
    };

    /// To see that it works.
    pub const QUICK: Self = Self {
        stretch: Duration::from_millis(100),
        rounds: 1,
        list: 5_000,
        api_lists: [1_000, 2_000],
        pods: 500,
        definitions: 50,
        deletions: 200,
        select: 20_000,
        watchers: 1_000,
        events: 50,
        lags: 100,
        starts: 3,
    };
}
