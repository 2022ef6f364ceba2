//! Regular expressions in the dialect that expressions use.

mod dialect;
#[cfg(test)]
mod tests;

use regex::{Regex, RegexBuilder};

/// A compiled pattern takes at most so many bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// Groups stand at most so deep in each other.
const MAX_DEPTH: u32 = 250;

/// What a small pattern takes at most: nearly all are small.
const SMALL_BYTES: usize = 16 << 10;
/// What a pattern of medium size takes at most.
const MEDIUM_BYTES: usize = 128 << 10;

/// How much work it was to compile a pattern: that depends on what it repeats, not on its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Small,
    Medium,
    Large,
}

/// A pattern, or what is wrong with it in the words of Kubernetes.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    build(&translate(pattern)?, MAX_COMPILED_BYTES).map_err(explain)
}

/// The same, and how much work that was.
pub(crate) fn compile_weighed(pattern: &str) -> (Result<Regex, String>, Weight) {
    let translated = match translate(pattern) {
        Ok(translated) => translated,
        Err(problem) => return (Err(problem), Weight::Small),
    };
    for (limit, weight) in [(SMALL_BYTES, Weight::Small), (MEDIUM_BYTES, Weight::Medium)] {
        match build(&translated, limit) {
            Err(regex::Error::CompiledTooBig(_)) => {}
            built => return (built.map_err(explain), weight),
        }
    }
    (build(&translated, MAX_COMPILED_BYTES).map_err(explain), Weight::Large)
}

fn translate(pattern: &str) -> Result<String, String> {
    dialect::translate(pattern).map_err(|problem| format!("error parsing regexp: {problem}"))
}

fn build(translated: &str, limit: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translated).size_limit(limit).nest_limit(MAX_DEPTH).build()
}

fn explain(error: regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "error parsing regexp: expression too large".to_owned(),
        _ => "error parsing regexp: expression nests too deeply".to_owned(),
    }
}
