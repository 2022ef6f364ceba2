//! A YAML writer with stable lines: sorted keys, one value per line, no folding.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Writes one entry of the top-level map, whose value is a map with keys in this order.
pub fn write_entry(out: &mut String, key: &str, value: &Value, order: &[&str]) {
    let _ = writeln!(out, "{}:", scalar_text(key));
    for key in order {
        if let Some(value) = value.get(*key) {
            entry(out, 2, key, value);
        }
    }
}

fn entry(out: &mut String, indent: usize, key: &str, value: &Value) {
    let _ = write!(out, "{:indent$}{}:", "", scalar_text(key));
    behind(out, indent, value);
}

/// Writes the value after a key or a dash.
fn behind(out: &mut String, indent: usize, value: &Value) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            map(out, indent + 2, fields);
        }
        Value::Array(items) if !items.is_empty() && !items.iter().all(is_short) => {
            out.push('\n');
            for item in items {
                list_item(out, indent, item);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            let _ = writeln!(out, " [{}]", items.join(", "));
        }
        other => {
            let _ = writeln!(out, " {}", scalar(other));
        }
    }
}

fn map(out: &mut String, indent: usize, fields: &Map<String, Value>) {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    for (key, value) in fields {
        entry(out, indent, key, value);
    }
}

fn list_item(out: &mut String, indent: usize, item: &Value) {
    match item {
        Value::Object(fields) if !fields.is_empty() => {
            let mut inner = String::new();
            map(&mut inner, indent + 2, fields);
            let _ = write!(out, "{:indent$}- {}", "", inner.trim_start());
        }
        other => {
            let _ = write!(out, "{:indent$}-", "");
            behind(out, indent, other);
        }
    }
}

/// Lists of a few short scalars, such as verbs, are written on one line.
fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= 24,
        Value::Object(_) | Value::Array(_) => false,
        _ => true,
    }
}

fn flow(value: &Value) -> String {
    match value {
        // In a flow sequence, a plain scalar must not contain these characters.
        Value::String(text) if text.contains([',', '[', ']', '{', '}']) => value.to_string(),
        other => scalar(other),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => scalar_text(text),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// A plain scalar if YAML cannot read it as another type, else a JSON string.
fn scalar_text(text: &str) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || " ._-/$()\"'<>=+;,".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '$' || c == '<');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let word = words.contains(&text.to_ascii_lowercase().as_str());
    if starts
        && !word
        && text.chars().all(|c| fine(c) || c == ':')
        && !text.contains(": ")
        && !text.ends_with([' ', ':'])
    {
        return text.to_owned();
    }
    Value::from(text).to_string()
}
