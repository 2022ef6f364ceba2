//! Two answers side by side.

use std::fmt;

use serde_json::Value;

/// A place where two answers differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// A JSON pointer into the answer.
    pub at: String,
    /// What Kubernetes says; `None` for nothing.
    pub expected: Option<Value>,
    /// What was said here.
    pub found: Option<Value>,
}

/// More of a value is not worth reading.
const SHOWN: usize = 600;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| {
            let text = value.as_ref().map_or("(nothing)".to_owned(), Value::to_string);
            match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        };
        writeln!(f, "    {}", self.at)?;
        writeln!(f, "      Kubernetes: {}", show(&self.expected))?;
        write!(f, "      Orlop:      {}", show(&self.found))
    }
}

/// Every place where an answer differs from the recorded one.
pub fn compare(expected: &Value, found: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    walk(String::new(), Some(expected), Some(found), &mut differences);
    differences
}

fn walk(at: String, expected: Option<&Value>, found: Option<&Value>, out: &mut Vec<Difference>) {
    match (expected, found) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys: Vec<&String> =
                a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
            keys.sort();
            for key in keys {
                let inner = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                walk(inner, a.get(key), b.get(key), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                walk(format!("{at}/{index}"), a.get(index), b.get(index), out);
            }
        }
        (expected, found) if expected == found => {}
        (expected, found) => {
            out.push(Difference { at, expected: expected.cloned(), found: found.cloned() });
        }
    }
}
