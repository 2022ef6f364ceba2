//! The list of differences that are there on purpose, each with its reason. What is on it for nothing has to go.

use std::cell::Cell;

use model::json::parse_yaml;
use serde::Deserialize;

use crate::compare::Difference;
use crate::files::CONTROLLERS;

/// A difference that is there on purpose.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// `AREA/SCRIPT: CASE`; `*` stands for any text.
    pub case: String,
    /// A JSON pointer into the answer; `*` stands for any text.
    pub at: String,
    /// Why it is better, or not there yet.
    pub why: String,
    #[serde(skip)]
    used: Cell<bool>,
}

/// All of them.
pub struct AllowedDifferences(Vec<Allowed>);

impl AllowedDifferences {
    /// Reads the list.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = parse_yaml(text.as_bytes()).map_err(|error| error.to_string())?;
        serde_json::from_value(parsed.value).map(Self).map_err(|error| error.to_string())
    }

    /// Whether a difference of this case is on the list.
    pub fn allow(&self, case: &str, difference: &Difference) -> bool {
        // Every entry that fits counts as used: an entry for one case may stand beside one for all.
        let fits = |entry: &&Allowed| matches(&entry.case, case) && matches(&entry.at, &difference.at);
        self.0.iter().filter(fits).inspect(|entry| entry.used.set(true)).count() > 0
    }

    /// The entries for which there was no difference, of those about scripts with controllers or of the others.
    pub fn stale(&self, controllers: bool) -> Vec<&Allowed> {
        let concerns = |entry: &&Allowed| entry.case.starts_with(CONTROLLERS) == controllers;
        self.0.iter().filter(concerns).filter(|entry| !entry.used.get()).collect()
    }
}

/// Whether a text has the form of a pattern with `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(tail) = text.strip_prefix(start) else { return false };
    let boundaries = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
    boundaries.into_iter().any(|at| matches(rest, &tail[at..]))
}
