//! Paths to fields, relative to the place of a rule: `.spec.x`, `['a.b']`.

use crate::structural::node::{Node, Values};

/// The path as errors show it, or nothing if it leads to no field of the schema.
pub(super) fn resolve(path: &str, schema: &Node) -> Option<String> {
    let mut shown = String::new();
    let mut node = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, behind) = step(rest)?;
        rest = behind;
        // A place that lists fields has those; otherwise every key is one.
        node = match (&node.values, node.fields.is_empty()) {
            (_, false) => {
                let field = node.field(&name)?;
                if !shown.is_empty() {
                    shown.push('.');
                }
                shown.push_str(&name);
                field
            }
            (Values::Of(values), true) => {
                shown.push_str(&format!("[{name}]"));
                values
            }
            _ => return None,
        };
    }
    Some(shown)
}

/// The first name of a path, and what follows.
fn step(path: &str) -> Option<(String, &str)> {
    if let Some(inside) = path.strip_prefix("['") {
        return quoted(inside);
    }
    let name = path.strip_prefix('.')?;
    let len = name.find(['.', '[', ']']).unwrap_or(name.len());
    let (name, rest) = name.split_at(len);
    (!name.is_empty()).then(|| (name.to_owned(), rest))
}

/// A name between quotes and what follows the bracket behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    loop {
        match chars.next()?.1 {
            '\'' => break,
            '\\' => name.push(match chars.next()?.1 {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    chars.as_str().strip_prefix(']').map(|rest| (name, rest))
}
