//! Field sets as `FieldsV1`, the JSON that objects have in `metadata.managedFields`.

use serde_json::Value;

use super::element::{Element, NoElement};
use super::set::{FieldSet, Part};

/// A set nests as deep as a body may.
const DEPTH_MAX: usize = 128;

impl<'a> FieldSet<'a> {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(value: &'a Value) -> Result<Self, NoElement> {
        decode(value, 0).map(|part| part.children)
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

/// Nearly every element is the name of a field, which needs no escapes.
fn write_name(element: &Element<'_>, out: &mut String, scratch: &mut String) {
    if let Element::Field(name) = element
        && name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
    {
        out.push_str("\"f:");
        out.push_str(name);
        out.push('"');
        return;
    }
    scratch.clear();
    element.write(scratch);
    out.push_str(&Value::from(scratch.as_str()).to_string());
}

fn decode(value: &Value, depth: usize) -> Result<Part<'_>, NoElement> {
    let Value::Object(entries) = value else { return Err(NoElement) };
    if depth > DEPTH_MAX {
        return Err(NoElement);
    }
    let mut parts = Vec::with_capacity(entries.len());
    for (name, value) in entries.iter().filter(|(name, _)| *name != ".") {
        if let Some(element) = Element::parse(name)? {
            parts.push((element, decode(value, depth + 1)?));
        }
    }
    let children = FieldSet::of_parts(parts);
    Ok(Part { member: children.is_empty() || entries.contains_key("."), children })
}
