//! Regular expressions in the dialect of Go's RE2, as expressions use them.

mod dialect;
#[cfg(test)]
mod tests;

use regex::{Regex, RegexBuilder};

/// The size limit of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// The nesting limit of groups.
const MAX_DEPTH: u32 = 250;

/// The size limit of a small pattern; nearly all patterns are small.
const SMALL_BYTES: usize = 16 << 10;
/// The size limit of a medium pattern.
const MEDIUM_BYTES: usize = 128 << 10;

/// The cost class of compiling a pattern, which depends on its repetitions and not on its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Small,
    Medium,
    Large,
}

/// Compiles a pattern; errors have Kubernetes' words.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    build(&translate(pattern)?, MAX_COMPILED_BYTES).map_err(explain)
}

/// Like [`compile`], and returns the cost class.
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
