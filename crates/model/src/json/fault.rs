//! Syntax errors of a JSON text, in the words of Go's parser where they are short: clients know them.

use lexical::quote;
use serde_json::error::Category;

use super::JsonError;

/// The message of `serde_json`, and Go's text behind the offending character.
const WORDS: &[(&str, &str)] = &[
    ("expected value", "looking for beginning of value"),
    ("trailing characters", "after top-level value"),
    ("expected `:`", "after object key"),
    ("expected `,` or `}`", "after object key:value pair"),
    ("expected `,` or `]`", "after array element"),
    ("key must be a string", "looking for beginning of object key string"),
    ("trailing comma", "looking for beginning of value"),
    ("invalid escape", "in string escape code"),
    ("control character", "in string literal"),
    ("invalid number", "in numeric literal"),
    ("expected ident", "in literal"),
    ("recursion limit exceeded", "exceeded max depth"),
];

/// Describes an error that the parser found in `text`.
pub(super) fn describe(error: &serde_json::Error, text: &str) -> JsonError {
    let message = match error.classify() {
        Category::Eof => "unexpected end of JSON input".to_owned(),
        _ => in_words(error, text),
    };
    JsonError { message }
}

fn in_words(error: &serde_json::Error, text: &str) -> String {
    let own = error.to_string();
    let (before, byte) = position(error, text);
    if own.starts_with("number out of range") {
        let number = before.rsplit(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).next();
        return format!(
            "json: cannot unmarshal number {} into Go value of type float64",
            number.unwrap_or("")
        );
    }
    let words = match WORDS.iter().find(|(start, _)| own.starts_with(start)) {
        Some(("trailing comma", _)) if byte == b'}' => "looking for beginning of object key string",
        Some((_, words)) => words,
        None => return own,
    };
    format!("invalid character {} {words}", quoted(byte))
}

/// A byte in single quotes. Go reads JSON byte by byte, and shows the first one of a longer character.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => format!("'{}'", quote(char::from(byte).encode_utf8(&mut [0; 2])).trim_matches('"')),
    }
}

/// The line up to and with the offending byte, and that byte.
///
/// Columns count bytes from one; column zero is the end of the line before.
fn position<'a>(error: &serde_json::Error, text: &'a str) -> (&'a str, u8) {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or("");
    let Some(start) = error.column().checked_sub(1) else {
        return ("", b'\n');
    };
    let byte = line.as_bytes().get(start).copied().unwrap_or(b'\n');
    (line.get(..=start).unwrap_or(line), byte)
}
