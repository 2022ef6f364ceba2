//! Label and field selectors: one list of requirements that all have to hold.

pub mod field;
pub mod label;
#[cfg(test)]
mod tests;

use crate::{Attributes, ObjectKey};

/// Requirements on labels and fields; the empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// All of them have to hold.
    pub requirements: Vec<Requirement>,
}

/// One requirement on one label or field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Whether `key` names a label or a field.
    pub target: Target,
    /// The label's key or the field's path.
    pub key: String,
    /// Condition on its value.
    pub test: Test,
}

/// Kind of attribute that a requirement tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A key of `metadata.labels`.
    Label,
    /// A field that the resource type declares selectable, or `metadata.name` or `metadata.namespace`.
    Field,
}

/// Condition on a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Present, with one of these values (`=`, `==`, `in`).
    In(Vec<String>),
    /// Absent, or with none of these values (`!=`, `notin`).
    NotIn(Vec<String>),
    /// Present (`key`).
    Exists,
    /// Absent (`!key`).
    NotExists,
    /// Present, an integer, and greater (`>`).
    GreaterThan(i64),
    /// Present, an integer, and less (`<`).
    LessThan(i64),
}

impl Selector {
    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with this key and these attributes is selected.
    pub fn matches(&self, key: &ObjectKey, attributes: &Attributes) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(key, attributes))
    }
}

impl Requirement {
    /// Whether an object with this key and these attributes satisfies it.
    pub fn matches(&self, key: &ObjectKey, attributes: &Attributes) -> bool {
        self.test.holds(match self.target {
            Target::Label => attributes.label(&self.key),
            Target::Field => match self.key.as_str() {
                "metadata.name" => Some(key.name.as_str()),
                "metadata.namespace" => Some(key.namespace.as_str()),
                path => attributes.field(path),
            },
        })
    }
}

impl Test {
    /// Whether it holds for a value, or for its absence.
    pub fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            Self::NotIn(values) => !value.is_some_and(|value| values.iter().any(|v| v == value)),
            Self::Exists => value.is_some(),
            Self::NotExists => value.is_none(),
            Self::GreaterThan(bound) => value.and_then(integer).is_some_and(|value| value > *bound),
            Self::LessThan(bound) => value.and_then(integer).is_some_and(|value| value < *bound),
        }
    }
}

fn integer(value: &str) -> Option<i64> {
    value.parse().ok()
}
