//! Quotes texts as Go's `%q` does, which is how Kubernetes quotes what a client sent.

use std::fmt::Write;

/// The text in double quotes, with everything escaped that does not print.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if c.is_ascii_control() => {
                write!(out, "\\x{:02x}", u32::from(c)).expect("a string takes every write");
            }
            c if c.is_control() => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes every write")
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_print_is_escaped() {
        for (text, quoted) in [
            ("", r#""""#),
            ("spec.foo", r#""spec.foo""#),
            ("we\"ird\\", r#""we\"ird\\""#),
            ("a\nb\tc\u{0}\u{7f}", r#""a\nb\tc\x00\x7f""#),
            ("gr\u{fc}n\u{85}", "\"gr\u{fc}n\\u0085\""),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }
}
