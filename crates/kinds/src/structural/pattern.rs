//! Regular expressions of schemas, in Kubernetes' dialect (RE2).

use std::fmt;
use std::sync::OnceLock;

use regex::Regex;

/// A pattern. It is compiled on first use: most patterns of most servers are never used.
pub struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    /// A pattern that may be invalid.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// Kubernetes' message about an invalid pattern.
    pub fn problem(&self) -> Option<&str> {
        self.compiled().as_ref().err().map(String::as_str)
    }

    /// Whether the pattern occurs in a text.
    pub fn matches(&self, text: &str) -> bool {
        self.compiled().as_ref().is_ok_and(|regex| regex.is_match(text))
    }

    fn compiled(&self) -> &Result<Regex, String> {
        self.compiled.get_or_init(|| cel::pattern::compile(&self.text))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}
