//! Field sets as `FieldsV1`, the JSON of `metadata.managedFields`.

use serde_json::Value;

use super::element::{Element, NoElement};
use super::set::{FieldSet, Subtree};

/// The nesting limit of request bodies.
const DEPTH_MAX: usize = 128;

impl<'a> FieldSet<'a> {
    /// Parses the JSON form.
    ///
    /// # Errors
    /// The value is not a field set.
    pub fn decode(value: &'a Value) -> Result<Self, NoElement> {
        decode(value, 0).map(|subtree| subtree.children)
    }

    /// Writes the JSON form: sorted, without spaces.
    pub fn encode(&self, out: &mut String) {
        self.write(false, out, &mut String::new());
    }

    fn write(&self, is_member: bool, out: &mut String, scratch: &mut String) {
        out.push('{');
        if is_member && !self.is_empty() {
            out.push_str("\".\":{}");
        }
        for (at, entry) in self.entries().iter().enumerate() {
            if at > 0 || is_member {
                out.push(',');
            }
            write_name(&entry.element, out, scratch);
            out.push(':');
            entry.children.write(entry.member, out, scratch);
        }
        out.push('}');
    }
}

fn write_name(element: &Element<'_>, out: &mut String, scratch: &mut String) {
    if let Element::Field(name) = element
        && is_plain(name)
    {
        out.push_str("\"f:");
        out.push_str(name);
        out.push('"');
        return;
    }
    scratch.clear();
    element.write(scratch);
    push_text(out, scratch);
}

/// Whether a text needs no JSON escapes. It looks at every byte, without early exit, so that the loop vectorizes.
fn is_plain(text: &str) -> bool {
    !text.bytes().fold(false, |found, byte| found | (byte < b' ') | (byte == b'"') | (byte == b'\\'))
}

/// Writes a JSON string. Rare escapes are left to `serde_json`.
pub(super) fn push_text(out: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < b' ') {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if matches!(byte, b'"' | b'\\') {
            out.push_str(&text[from..at]);
            out.push('\\');
            from = at;
        }
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// Writes a JSON value.
pub(super) fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_text(out, text),
        other => out.push_str(&other.to_string()),
    }
}

fn decode(value: &Value, depth: usize) -> Result<Subtree<'_>, NoElement> {
    let Value::Object(entries) = value else { return Err(NoElement) };
    if depth > DEPTH_MAX {
        return Err(NoElement);
    }
    let mut subtrees = Vec::with_capacity(entries.len());
    for (name, value) in entries.iter().filter(|(name, _)| *name != ".") {
        if let Some(element) = Element::parse(name)? {
            subtrees.push((element, decode(value, depth + 1)?));
        }
    }
    let children = FieldSet::of_subtrees(subtrees);
    Ok(Subtree { member: children.is_empty() || entries.contains_key("."), children })
}
