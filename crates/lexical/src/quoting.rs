//! Text in double quotes, as `strconv.Quote` and `%q` write it.

use std::fmt::Write;

/// Quotes a text with the escapes of Go's `%q`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            ' '..='~' => out.push(character),
            '\0'..='\x1f' | '\x7f' => escape(&mut out, "\\x", 2, character),
            _ if is_printable(character) => out.push(character),
            '\0'..='\u{ffff}' => escape(&mut out, "\\u", 4, character),
            _ => escape(&mut out, "\\U", 8, character),
        }
    }
    out.push('"');
    out
}

fn escape(out: &mut String, prefix: &str, width: usize, character: char) {
    write!(out, "{prefix}{:0width$x}", u32::from(character)).expect("writing to a String cannot fail");
}

/// Whether Go prints a character as it is: letters, marks, numbers, punctuation, symbols and the ASCII space.
///
/// Rust has this test only in `escape_debug`, which also escapes a combining character at the start of a
/// text, hence the letter in front. Its Unicode tables are newer: Go 1.26 escapes characters assigned after
/// Unicode 15.0, this function does not.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    format!("a{character}").escape_debug().nth(1) == Some(character)
}

#[cfg(test)]
mod tests {
    use super::quote;

    /// The right column is what `strconv.Quote` of Go 1.26 gives.
    #[test]
    fn texts_are_quoted_as_by_go() {
        let rows = [
            ("", r#""""#),
            ("a 'b' `c`", r#""a 'b' `c`""#),
            ("\"\\", r#""\"\\""#),
            ("\x07\x08\x0c\n\r\t\x0b", r#""\a\b\f\n\r\t\v""#),
            ("\0\x01\x1b\x7f", r#""\x00\x01\x1b\x7f""#),
            ("\u{80}\u{9f}\u{a0}\u{ad}", r#""\u0080\u009f\u00a0\u00ad""#),
            ("é \u{301}a 中", "\"é \u{301}a 中\""),
            ("\u{301}", "\"\u{301}\""),
            ("\u{378}", r#""\u0378""#),
            (
                "\u{600}\u{200b}\u{2028}\u{3000}\u{feff}\u{fffd}",
                "\"\\u0600\\u200b\\u2028\\u3000\\ufeff\u{fffd}\"",
            ),
            ("\u{e000}\u{ffff}", r#""\ue000\uffff""#),
            ("😀\u{1d173}\u{e0001}\u{10ffff}", r#""😀\U0001d173\U000e0001\U0010ffff""#),
            ("\u{e0100}", "\"\u{e0100}\""),
        ];
        for (text, quoted) in rows {
            assert_eq!(quote(text), quoted, "{text:?}");
        }
    }
}
