//! Regular expressions in the dialect that expressions use.

use regex::{Regex, RegexBuilder};

/// A compiled pattern takes at most so many bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A pattern, or what is wrong with it.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).nest_limit(250).build();
    built.map_err(|error| format!("error parsing regexp: {error}"))
}
