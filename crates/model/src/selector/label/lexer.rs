//! Splits the text of a label selector into words and symbols.

use std::fmt;

/// A piece of the text. Displays as in messages: the end as nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A key, a value, or `in` and `notin`: only the position tells them apart.
    Word(&'a str),
    /// An operator, a parenthesis or a comma.
    Symbol(&'a str),
    /// Nothing is left.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) | Self::Symbol(text) => f.write_str(text),
            Self::End => Ok(()),
        }
    }
}

/// The pieces of a text, without the end.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while let Some(first) = rest.chars().next() {
        let length = if is_symbol(first) {
            if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 }
        } else {
            rest.find(|c| is_symbol(c) || is_blank(c)).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        tokens.push(if is_symbol(first) { Token::Symbol(token) } else { Token::Word(token) });
        rest = after.trim_start_matches(is_blank);
    }
    tokens
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}
