//! Comparison of two answers.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// A difference between two answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// A JSON pointer into the answer.
    pub at: String,
    /// Kubernetes' value; `None` if it is absent.
    pub expected: Option<Value>,
    /// Orlop's value; `None` if it is absent.
    pub found: Option<Value>,
}

/// The number of characters of a value that a report shows.
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

/// All differences of an answer from the recorded one.
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
        (Some(Value::Array(a)), Some(Value::Array(b))) if let Some((a, b)) = named(a, b) => {
            walk_named(&at, &a, &b, out);
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

/// List entries with their names.
type Named<'a> = Vec<(&'a str, &'a Value)>;

/// Names the entries of two lists, if every entry has a unique name. Such lists are compared by name, so that
/// one additional entry is one difference.
fn named<'a>(a: &'a [Value], b: &'a [Value]) -> Option<(Named<'a>, Named<'a>)> {
    const NAMES: [&str; 5] = ["/resource", "/subresource", "/name", "/version", "/metadata/name"];
    let by = |list: &'a [Value], pointer: &str| -> Option<Named<'a>> {
        let entries: Named<'a> = list
            .iter()
            .map(|entry| Some((entry.pointer(pointer)?.as_str()?, entry)))
            .collect::<Option<_>>()?;
        let names: BTreeSet<&str> = entries.iter().map(|(name, _)| *name).collect();
        (names.len() == entries.len()).then_some(entries)
    };
    NAMES.iter().find_map(|pointer| Some((by(a, pointer)?, by(b, pointer)?)))
}

fn walk_named(at: &str, a: &Named<'_>, b: &Named<'_>, out: &mut Vec<Difference>) {
    let common = |these: &Named<'_>, those: &Named<'_>| -> Vec<Value> {
        let shared = these.iter().filter(|(name, _)| find(those, name).is_some());
        shared.map(|(name, _)| Value::from(*name)).collect()
    };
    let (expected, found) = (common(a, b), common(b, a));
    if expected != found {
        let (expected, found) = (Some(expected.into()), Some(found.into()));
        out.push(Difference { at: format!("{at}/order"), expected, found });
    }
    let missing = b.iter().filter(|(name, _)| find(a, name).is_none());
    for (name, _) in a.iter().chain(missing) {
        let inner = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        walk(inner, find(a, name), find(b, name), out);
    }
}

fn find<'a>(list: &Named<'a>, name: &str) -> Option<&'a Value> {
    list.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
}
