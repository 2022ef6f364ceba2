//! The rows of the report, and the table made from them.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::Result;
use regex::Regex;

use crate::args::{Args, Sizes};
use crate::figure::{Figure, Goal};

/// The result of a measure.
#[derive(Debug)]
pub struct Outcome {
    /// The figure.
    pub figure: Figure,
    /// The machine's own limit, and a description of it.
    pub limit: Option<(Figure, &'static str)>,
    /// The goal.
    pub goal: Goal,
}

impl Outcome {
    /// A figure without limit and goal.
    pub fn of(figure: Figure) -> Self {
        Self { figure, limit: None, goal: Goal::None }
    }

    /// Adds the machine's own limit.
    #[must_use]
    pub fn beside(mut self, limit: Figure, what: &'static str) -> Self {
        self.limit = Some((limit, what));
        self
    }

    /// Adds a goal.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goal = goal;
        self
    }
}

/// The engine under test, and the processes that shared the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Its name in the table.
    pub name: &'static str,
    /// The busy processes.
    pub busy: &'static str,
}

/// The engine name of Kubernetes' figures, which become a column instead of rows.
pub const KUBERNETES: Engine = Engine { name: "Kubernetes", busy: "bench, kube-apiserver, etcd" };

struct Row {
    measure: String,
    engine: Engine,
    outcome: Result<Outcome, String>,
}

/// The requested measures and their results.
pub struct Report {
    /// The command line.
    pub args: Args,
    /// The amount of work.
    pub sizes: Sizes,
    rows: Vec<Row>,
    started: Instant,
}

impl Report {
    /// An empty report.
    pub fn new(args: Args) -> Self {
        let sizes = if args.quick { Sizes::QUICK } else { Sizes::FULL };
        Self { args, sizes, rows: Vec::new(), started: Instant::now() }
    }

    /// Whether a measure was requested.
    pub fn wants(&self, measure: &str, engine: Engine) -> bool {
        // Kubernetes is measured for every figure of ours that was requested.
        let names = if engine == KUBERNETES {
            &["Kubernetes", "SQLite file", "PostgreSQL"][..]
        } else {
            &[engine.name]
        };
        let is_named = |only: &Regex| names.iter().any(|name| only.is_match(&format!("{measure} / {name}")));
        self.args.only.as_ref().is_none_or(is_named)
    }

    /// Whether any of these measures was requested.
    pub fn wants_any(&self, measures: &[impl AsRef<str>], engine: Engine) -> bool {
        measures.iter().any(|measure| self.wants(measure.as_ref(), engine))
    }

    /// Runs a measure if it was requested and records its result. A failure is recorded too, and the other
    /// measures continue.
    pub async fn measure(
        &mut self,
        measure: &str,
        engine: Engine,
        work: impl Future<Output = Result<Outcome>>,
    ) {
        if !self.wants(measure, engine) {
            return;
        }
        progress(&format!("[{:>4} s] {measure} / {}", self.started.elapsed().as_secs(), engine.name));
        let outcome = work.await.map_err(|error| format!("{error:#}"));
        match &outcome {
            Ok(outcome) => progress(&format!("         {}", in_short(outcome))),
            Err(error) => progress(&format!("         failed: {error}")),
        }
        self.rows.push(Row { measure: measure.to_owned(), engine, outcome });
    }

    /// Records the failure of a shared setup; the other measures continue.
    pub fn section(&mut self, section: &str, engine: Engine, result: Result<()>) {
        if let Err(error) = result {
            progress(&format!("         failed: {error:#}"));
            self.rows.push(Row { measure: section.to_owned(), engine, outcome: Err(format!("{error:#}")) });
        }
    }

    /// Whether a measure failed or nothing was measured. A failure of Kubernetes alone is a result.
    pub fn is_broken(&self) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| row.outcome.is_err() && !self.is_of_peer(row))
    }

    /// Whether the row belongs to the Kubernetes column beside one of ours.
    fn is_of_peer(&self, row: &Row) -> bool {
        let is_beside = |other: &Row| other.engine != KUBERNETES && other.measure == row.measure;
        row.engine == KUBERNETES && self.rows.iter().any(is_beside)
    }

    /// The table in Markdown.
    pub fn table(&self) -> String {
        let mut out = String::from(
            "| measure | engine | figure | machine's own limit | ratio | Kubernetes | ratio | goal | | busy on the same cores |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        let is_shown = |row: &&Row| row.engine != KUBERNETES || row.outcome.is_err() && !self.is_of_peer(row);
        for row in self.rows.iter().filter(is_shown) {
            let peer = self.kubernetes(&row.measure);
            let cells = match &row.outcome {
                Ok(outcome) => cells(outcome, peer),
                Err(error) => format!("{} | | | | | | |", failure(error)),
            };
            let _ = writeln!(out, "| {} | {} | {cells} {} |", row.measure, row.engine.name, row.engine.busy);
        }
        out
    }

    fn kubernetes(&self, measure: &str) -> Option<Result<&Figure, &str>> {
        let row = self.rows.iter().find(|row| row.engine == KUBERNETES && row.measure == measure)?;
        Some(row.outcome.as_ref().map(|outcome| &outcome.figure).map_err(String::as_str))
    }
}

fn failure(error: &str) -> String {
    format!("failed: {}", error.replace('|', "/").replace('\n', " "))
}

fn cells(outcome: &Outcome, peer: Option<Result<&Figure, &str>>) -> String {
    let Outcome { figure, limit, goal } = outcome;
    let (limit_text, ratio) = match limit {
        Some((limit, what)) => (format!("{limit}: {what}"), figure.compared(limit)),
        None => ("–".to_owned(), "–".to_owned()),
    };
    let (peer_text, times) = match peer {
        Some(Ok(peer)) => (peer.to_string(), format!("{:.1} × better", figure.times_better(peer))),
        Some(Err(error)) => (failure(error), "–".to_owned()),
        None => ("–".to_owned(), "–".to_owned()),
    };
    let verdict = match goal.is_met(figure, limit.as_ref().map(|(limit, _)| limit), peer.and_then(Result::ok))
    {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "",
    };
    let goal = goal.text(figure.unit);
    format!("{figure} | {limit_text} | {ratio} | {peer_text} | {times} | {goal} | {verdict} |")
}

fn in_short(outcome: &Outcome) -> String {
    match &outcome.limit {
        Some((limit, what)) => format!("{}; limit {limit}: {what}", outcome.figure),
        None => outcome.figure.to_string(),
    }
}

/// Prints progress.
pub fn progress(line: &str) {
    eprintln!("{line}");
}
