//! The JSONPath that printer columns and selectable fields use: fields, indexes, slices, unions, filters, `*` and `..`.

mod evaluate;
mod parse;
#[cfg(test)]
mod tests;

pub use evaluate::{Found, shown};

/// A path, as a row of steps from the object inwards.
#[derive(Debug, Default, PartialEq)]
pub struct JsonPath {
    steps: Box<[Step]>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

/// One step of a path: from each value to others.
#[derive(Debug, PartialEq)]
enum Step {
    /// What stands at a key.
    Field(Box<str>),
    /// Everything that is directly in it.
    Wildcard,
    /// It and everything that is in it, at any depth.
    Recursive,
    /// Some items of a list.
    Slice(Slice),
    /// What several paths lead to, one after another.
    Union(Box<[JsonPath]>),
    /// The items of a list for which something holds.
    Filter(Box<Filter>),
    /// A value that was written down.
    Literal(serde_json::Value),
    /// A word of the template language that has no place here.
    Word,
}

/// Items of a list; negative positions count from its end.
#[derive(Debug, Default, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// Whether it is one item, so that `end` follows from `start`.
    single: bool,
    step: Option<i64>,
}

/// A condition about an item of a list.
#[derive(Debug, PartialEq)]
struct Filter {
    left: JsonPath,
    /// `None`: the left side has to be there.
    comparison: Option<(Box<str>, JsonPath)>,
}
