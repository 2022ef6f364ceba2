//! The JSONPath of printer columns and selectable fields: fields, indexes, slices, unions, filters, `*` and `..`.

mod evaluate;
mod parse;
#[cfg(test)]
mod tests;

pub use evaluate::{Selected, shown};

/// A path as a list of segments from the root object.
#[derive(Debug, Default, PartialEq)]
pub struct JsonPath {
    steps: Box<[Segment]>,
}

/// The reason why a text is not a JSONPath.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

/// A segment of a path: maps each value to others.
#[derive(Debug, PartialEq)]
enum Segment {
    /// The value of a key.
    Field(Box<str>),
    /// All direct children.
    Wildcard,
    /// The value and all its descendants.
    Recursive,
    /// Some items of a list.
    Slice(Slice),
    /// The values of several paths.
    Union(Box<[JsonPath]>),
    /// The items of a list that match a condition.
    Filter(Box<Filter>),
    /// A literal.
    Literal(serde_json::Value),
    /// An identifier of the template language, which is not supported here.
    Word,
}

/// Items of a list; negative positions count from the end.
#[derive(Debug, Default, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// Whether it selects one item, so that `end` follows from `start`.
    single: bool,
    step: Option<i64>,
}

/// A condition on an item of a list.
#[derive(Debug, PartialEq)]
struct Filter {
    left: JsonPath,
    /// `None`: the left side must exist.
    comparison: Option<(Box<str>, JsonPath)>,
}
