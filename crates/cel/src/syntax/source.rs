//! Errors with their place in the text.

use std::fmt;

/// Something wrong with an expression, at a byte of its text; without a place where it is about all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Where it is.
    pub position: Option<u32>,
    /// What is wrong.
    pub message: String,
}

/// Everything wrong with an expression. It prints the place of each below the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    source: String,
    issues: Vec<Issue>,
}

/// How many are shown.
const MAX_SHOWN: usize = 100;
/// Longer lines are not shown.
const MAX_SNIPPET_BYTES: usize = 16_384;

impl Issues {
    pub(crate) fn new(source: &str, mut issues: Vec<Issue>) -> Self {
        issues.sort_by_key(|issue| issue.position);
        Issues { source: source.to_owned(), issues }
    }

    /// The errors in the order of their places.
    pub fn list(&self) -> &[Issue] {
        &self.issues
    }

    /// The line that a byte is on (from 1), its number of characters before the byte, and the line.
    fn locate(&self, position: u32) -> (usize, usize, &str) {
        let position = (position as usize).min(self.source.len());
        let before = &self.source[..position];
        let start = before.rfind('\n').map_or(0, |index| index + 1);
        let end = self.source[start..].find('\n').map_or(self.source.len(), |length| start + length);
        (
            before.matches('\n').count() + 1,
            self.source[start..position].chars().count(),
            &self.source[start..end],
        )
    }

    fn show(&self, issue: &Issue, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(position) = issue.position else {
            return write!(formatter, "ERROR: <input>:-1:0: {}", issue.message);
        };
        if self.source.is_empty() {
            return write!(formatter, "ERROR: <input>:1:0: {}", issue.message);
        }
        let (line, column, text) = self.locate(position);
        write!(formatter, "ERROR: <input>:{line}:{}: {}", column + 1, issue.message)?;
        if text.len() > MAX_SNIPPET_BYTES {
            return Ok(());
        }
        write!(formatter, "\n | {}\n | ", text.replace('\t', " "))?;
        let mut characters = text.chars();
        for character in characters.by_ref().take(column) {
            formatter.write_str(if character.is_ascii() { "." } else { "\u{ff0e}" })?;
        }
        let is_wide = characters.next().is_some_and(|character| !character.is_ascii());
        formatter.write_str(if is_wide { "\u{ff3e}" } else { "^" })
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().take(MAX_SHOWN).enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            self.show(issue, formatter)?;
        }
        match self.issues.len().checked_sub(MAX_SHOWN) {
            Some(more @ 1..) => write!(formatter, "\n{more} more errors were truncated"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Issues {}
