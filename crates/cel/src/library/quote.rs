//! Text between double quotes, as Kubernetes' messages show it.

use std::fmt::Write;

/// Quotes a text and escapes what cannot be printed.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match escape(c) {
            Some(escaped) => quoted.push_str(escaped),
            None if c < ' ' || c == '\x7f' => push(&mut quoted, format_args!("\\x{:02x}", u32::from(c))),
            None if is_printable(c) => quoted.push(c),
            None if u32::from(c) < 0x1_0000 => push(&mut quoted, format_args!("\\u{:04x}", u32::from(c))),
            None => push(&mut quoted, format_args!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes everything");
}

fn escape(c: char) -> Option<&'static str> {
    Some(match c {
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x0b' => "\\v",
        '\\' => "\\\\",
        '"' => "\\\"",
        _ => return None,
    })
}

/// Whether a character shows something; among spaces only the usual one does.
fn is_printable(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{10ffff}'
    );
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format)
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        assert_eq!(quote("a \"b\"\n\\\u{7}\u{1}é\u{a0}\u{feff}😀"), r#""a \"b\"\n\\\a\x01é\u00a0\ufeff😀""#);
    }
}
