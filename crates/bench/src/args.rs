//! The command line, and the amount of work that follows from it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use regex::Regex;

/// Measures the store and the API, relative to the machine's own limits and to Kubernetes
///
/// Prints one table. Each figure is beside the machine's own limit from the same run: raw SQLite and
/// PostgreSQL commits without Orlop's schema, raw TLS responses without Orlop's server. So the ratio is
/// meaningful on any machine, even a busy one. Progress goes to standard error, the table (Markdown) to
/// standard output.
///
/// Databases are created in the temporary folder and removed at the end. Set TMPDIR to measure another disk,
/// in particular if the temporary folder is in memory, where commits are free.
#[derive(Debug, Parser)]
#[command(name = "bench", after_long_help = EXAMPLES)]
pub struct Args {
    /// Run only measures whose "MEASURE / ENGINE" matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<Regex>,

    /// Attack a server on loopback and print its memory and the latency of a healthy client; --only selects
    /// attacks
    #[arg(long)]
    pub attack: bool,

    /// Use small counts and short times: a functional check, its figures mean little
    #[arg(long)]
    pub quick: bool,

    /// Also measure the kube-apiserver and etcd in this folder, and print the ratio
    #[arg(long, value_name = "ASSETS")]
    pub kubernetes: Option<PathBuf>,

    /// Use this PostgreSQL server instead of starting a private one; databases are created in it and dropped
    /// again
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,

    /// Measure this server program instead of building the one of this workspace
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

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The duration of a load phase.
    pub stretch: Duration,
    /// The number of alternations between limit and figure; the median counts.
    pub rounds: usize,
    /// Objects in a list of the store.
    pub list: usize,
    /// Objects in the short and in the long list of the API.
    pub api_lists: [usize; 2],
    /// Pods in a list.
    pub pods: usize,
    /// CRDs.
    pub crds: usize,
    /// Objects that a cascading deletion removes.
    pub deletions: usize,
    /// Objects among which one is selected.
    pub select: usize,
    /// Watches that receive every event.
    pub watchers: usize,
    /// Events per watch.
    pub events: usize,
    /// Writes whose lag is measured.
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
        crds: 1_000,
        deletions: 10_000,
        select: 1_000_000,
        watchers: 1_000,
        events: 2_000,
        lags: 1_000,
        starts: 20,
    };

    /// For a functional check.
    pub const QUICK: Self = Self {
        stretch: Duration::from_millis(100),
        rounds: 1,
        list: 5_000,
        api_lists: [1_000, 2_000],
        pods: 500,
        crds: 50,
        deletions: 200,
        select: 20_000,
        watchers: 1_000,
        events: 50,
        lags: 100,
        starts: 3,
    };
}
