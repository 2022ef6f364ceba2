//! The list of intended differences from Kubernetes, each with its reason. An entry that matches nothing
//! fails the test.

use std::cell::RefCell;
use std::collections::BTreeSet;

use model::json::parse_yaml;
use serde::Deserialize;

use crate::compare::Difference;
use crate::files::CONTROLLERS;

/// An intended difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// `AREA/SCRIPT: CASE`; `*` stands for any text.
    pub case: String,
    /// A JSON pointer into the answer; `*` stands for any text.
    pub at: String,
    /// The reason: better than Kubernetes, or not implemented yet.
    pub why: String,
    /// The number of cases it excuses, so that a new difference cannot hide behind a pattern.
    #[serde(default = "one")]
    pub cases: usize,
    #[serde(skip)]
    used: RefCell<BTreeSet<String>>,
}

fn one() -> usize {
    1
}

/// All intended differences.
pub struct AllowedDifferences(Vec<Allowed>);

impl AllowedDifferences {
    /// Parses the list.
    ///
    /// # Errors
    /// When the list is malformed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = parse_yaml(text.as_bytes()).map_err(|error| error.to_string())?;
        serde_json::from_value(parsed.value).map(Self).map_err(|error| error.to_string())
    }

    /// The number of cases that all entries excuse together.
    pub fn cases(&self) -> usize {
        self.0.iter().map(|entry| entry.cases).sum()
    }

    /// Whether the list allows a difference of this case.
    pub fn allow(&self, case: &str, difference: &Difference) -> bool {
        // All matching entries count as used: an entry for one case may be beside one for all.
        let fits = |entry: &&Allowed| matches(&entry.case, case) && matches(&entry.at, &difference.at);
        let mut is_allowed = false;
        for entry in self.0.iter().filter(fits) {
            entry.used.borrow_mut().insert(case.to_owned());
            is_allowed = true;
        }
        is_allowed
    }

    /// A sentence for each entry whose number of excused cases is wrong, among the entries about scripts with
    /// controllers or among the rest.
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

/// Whether a text matches a pattern with `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(tail) = text.strip_prefix(start) else { return false };
    let boundaries = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
    boundaries.into_iter().any(|at| matches(rest, &tail[at..]))
}
