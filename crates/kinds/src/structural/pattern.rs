//! Regular expressions of schemas, in the dialect of Kubernetes.

use std::fmt;
use std::sync::OnceLock;

use regex::Regex;

/// A pattern that texts are matched with. It is compiled when it is first used: most patterns of most servers never are.
pub struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    /// A pattern that need not be valid.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// What is wrong with the pattern, in the words of Kubernetes.
    pub fn problem(&self) -> Option<&str> {
        self.compiled().as_ref().err().map(String::as_str)
    }

    /// Whether it occurs in a text.
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
