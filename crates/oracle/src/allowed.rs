//! The list of differences that are there on purpose, each with its reason. What is on it for nothing has to go.

use std::cell::RefCell;
use std::collections::BTreeSet;

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
    /// How many cases it excuses: a pattern states it, so that a new difference does not hide behind it.
    #[serde(default = "one")]
    pub cases: usize,
    #[serde(skip)]
    used: RefCell<BTreeSet<String>>,
}

fn one() -> usize {
    1
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
        let mut is_allowed = false;
        for entry in self.0.iter().filter(fits) {
            entry.used.borrow_mut().insert(case.to_owned());
            is_allowed = true;
        }
        is_allowed
    }

    /// A sentence about each entry that does not excuse as many cases as it states, of those about scripts with controllers or of the
    /// others.
    pub fn miscounted(&self, controllers: bool) -> Vec<String> {
        let concerns = |entry: &&Allowed| entry.case.starts_with(CONTROLLERS) == controllers;
        let sentence = |entry: &Allowed| {
            let Allowed { case, at, cases, .. } = entry;
            match entry.used.borrow().len() {
                0 => Some(format!("there is no difference at {at} of {case}")),
                used if used == *cases => None,
                used => Some(format!("{used} cases differ at {at} of {case}, not {cases}")),
            }
        };
        self.0.iter().filter(concerns).filter_map(sentence).collect()
    }
}

/// Whether a text has the form of a pattern with `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(tail) = text.strip_prefix(start) else { return false };
    let boundaries = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
    boundaries.into_iter().any(|at| matches(rest, &tail[at..]))
}
