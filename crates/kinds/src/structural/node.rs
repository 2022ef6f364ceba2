//! A node of a schema.

use serde_json::Value;

use super::checks::Checks;

/// The schema of one value. Rare properties are boxed.
#[derive(Debug, Default)]
pub struct Node {
    /// The type of the value; `None` if any is allowed.
    pub kind: Option<ValueType>,
    /// Whether it may be `null`.
    pub nullable: bool,
    /// Whether it is an integer or a string (`x-kubernetes-int-or-string`).
    pub int_or_string: bool,
    /// Whether unknown fields are preserved (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// Whether it is an object with kind, version and metadata (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// Whether apply treats a map or object as atomic (`x-kubernetes-map-type: atomic`).
    pub atomic_map: bool,
    /// The merge semantics of a list (`x-kubernetes-list-type`).
    pub list_type: ListType,
    /// The fields of an object, sorted by name.
    pub fields: Box<[(Box<str>, Node)]>,
    /// The schema of unlisted fields.
    pub values: Values,
    /// The items of a list.
    pub items: Option<Box<Node>>,
    /// The default.
    pub default: Option<Box<Value>>,
    /// The constraints.
    pub checks: Option<Box<Checks>>,
}

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A JSON object.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// The identity of the items of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Unspecified, which is treated as atomic.
    #[default]
    Unset,
    /// None: the list is owned and replaced as a whole.
    Atomic,
    /// The value.
    Set,
    /// The values of these fields.
    Map(Box<[Box<str>]>),
}

/// The schema of unlisted fields (`additionalProperties`).
#[derive(Debug, Default)]
pub enum Values {
    /// No unlisted fields; they are pruned.
    #[default]
    Closed,
    /// Anything.
    Any,
    /// No unlisted fields, but they are not pruned (`additionalProperties: false`).
    Forbidden,
    /// Values of this schema: the object is a map.
    Of(Box<Node>),
}

impl ValueType {
    /// The type with this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean];
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in schemas.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

impl Node {
    /// The listed field with this name.
    pub fn field(&self, name: &str) -> Option<&Node> {
        let at = self.fields.binary_search_by(|(field, _)| (**field).cmp(name)).ok()?;
        Some(&self.fields[at].1)
    }

    /// The schema of a key: that of the listed field, or else that of the unlisted ones.
    pub fn at_key(&self, name: &str) -> Option<&Node> {
        self.field(name).or(match &self.values {
            Values::Of(node) => Some(node),
            Values::Closed | Values::Any | Values::Forbidden => None,
        })
    }
}
