//! Compile errors with their positions in the source.

use std::fmt;

/// A compile error, at a byte of the source, or without a position for the whole expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The byte offset.
    pub position: Option<u32>,
    /// The error message.
    pub message: String,
}

/// All errors of an expression. Displays each with the source line and a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    source: String,
    issues: Vec<Issue>,
}

/// The maximum number of displayed errors.
const MAX_SHOWN: usize = 100;
/// Longer source lines are not displayed.
const MAX_SNIPPET_BYTES: usize = 16_384;

impl Issues {
    pub(crate) fn new(source: &str, mut issues: Vec<Issue>) -> Self {
        issues.sort_by_key(|issue| issue.position);
        Issues { source: source.to_owned(), issues }
    }

    /// The errors, by position.
    pub fn list(&self) -> &[Issue] {
        &self.issues
    }

    /// The line number (from 1) of a byte, its column in characters, and the line.
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
