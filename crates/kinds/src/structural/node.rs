//! One place of a schema.

use serde_json::Value;

use super::checks::Checks;

/// The schema of one value. Most values have few of these; what is rare is boxed.
#[derive(Debug, Default)]
pub struct Node {
    /// What the value has to be; `None` where anything will do.
    pub kind: Option<Kind>,
    /// Whether it may be `null`.
    pub nullable: bool,
    /// Whether it is an integer or a string (`x-kubernetes-int-or-string`).
    pub int_or_string: bool,
    /// Whether fields that the schema does not know are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// Whether it is an object with kind, version and metadata (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// Whether apply owns a map or object as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic_map: bool,
    /// What identifies an item of a list (`x-kubernetes-list-type`).
    pub list_type: ListType,
    /// The fields of an object, sorted by name.
    pub fields: Box<[(Box<str>, Node)]>,
    /// What the fields of an object are that are not listed.
    pub values: Values,
    /// The items of a list.
    pub items: Option<Box<Node>>,
    /// What is filled in where there is no value.
    pub default: Option<Box<Value>>,
    /// What is demanded of it beyond its type.
    pub checks: Option<Box<Checks>>,
}

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A JSON object.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// What identifies an item of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Nothing is said, which is as good as atomic.
    #[default]
    Unset,
    /// Nothing: it is owned and replaced as a whole.
    Atomic,
    /// Its value.
    Set,
    /// The values of these fields.
    Map(Box<[Box<str>]>),
}

/// What the fields of an object are that are not listed (`additionalProperties`).
#[derive(Debug, Default)]
pub enum Values {
    /// There are none.
    #[default]
    Closed,
    /// Anything.
    Any,
    /// There may be none, and none is pruned (`additionalProperties: false`).
    Forbidden,
    /// Values of this schema: the object is a map.
    Of(Box<Node>),
}

impl Kind {
    /// The type with this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean];
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// As schemas write it.
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

    /// The schema of what stands at a key: a listed field, or else what the others are.
    pub fn at_key(&self, name: &str) -> Option<&Node> {
        self.field(name).or(match &self.values {
            Values::Of(node) => Some(node),
            Values::Closed | Values::Any | Values::Forbidden => None,
        })
    }
}
