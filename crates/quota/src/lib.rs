//! Quotas: what an object uses of what a namespace may use. Pure: who admits a write and who counts again use the same functions.

pub mod amounts;
mod charge;
mod counted;
mod scope;
mod tally;

use serde_json::Value;

pub use charge::{Quota, charge};
pub use counted::Counted;
pub use tally::{Resource, Tally, resources};

/// An object as a tree.
type Object = serde_json::Map<String, Value>;

/// The text at a path.
fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or("")
}

fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, key| value.get(key)).filter(|value| !value.is_null())
}
