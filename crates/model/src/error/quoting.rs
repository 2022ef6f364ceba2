//! Values within messages, written as Go writes them: clients compare whole messages.

use std::fmt::Write;

use serde_json::{Number, Value};

/// A text in double quotes, with the escapes of Go's `%q`.
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

/// A value as it stands in a field error: texts as by [`quote`], numbers plain, lists and objects as JSON.
pub(super) fn display(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => display_number(number),
        // Go writes these characters, which occur in JSON only within texts, so that no HTML can arise.
        other => other.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"),
    }
}

/// Go writes a floating point number with as few digits as identify it, with an exponent only at the extremes.
pub(crate) fn display_number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e6).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    float.to_string()
}

fn escape(out: &mut String, prefix: &str, width: usize, character: char) {
    write!(out, "{prefix}{:0width$x}", u32::from(character)).expect("writing to a String cannot fail");
}

/// Whether Go prints a character as it is.
///
/// Rust and Go agree on what is printable; Rust's test is to be had through `escape_debug` only. It escapes
/// combining characters at the start of a text, hence the letter in front.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    format!("a{character}").escape_debug().nth(1) == Some(character)
}
