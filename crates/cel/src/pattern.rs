//! Regular expressions in the dialect that expressions use.

mod dialect;
#[cfg(test)]
mod tests;

use regex::{Regex, RegexBuilder};

/// A compiled pattern takes at most so many bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// Groups stand at most so deep in each other.
const MAX_DEPTH: u32 = 250;

/// A pattern, or what is wrong with it in the words of Kubernetes.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated =
        dialect::translate(pattern).map_err(|problem| format!("error parsing regexp: {problem}"))?;
    let built = RegexBuilder::new(&translated).size_limit(MAX_COMPILED_BYTES).nest_limit(MAX_DEPTH).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "error parsing regexp: expression too large".to_owned(),
        _ => "error parsing regexp: expression nests too deeply".to_owned(),
    })
}
