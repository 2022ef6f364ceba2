//! The value constraints of a schema.

use serde_json::Value;

use super::format::Format;
use super::node::Node;
use super::pattern::Pattern;
use super::rules::Rule;

/// The constraints of one schema node.
#[derive(Debug, Default)]
pub struct Checks {
    /// `maximum`.
    pub maximum: Option<f64>,
    /// `exclusiveMaximum`.
    pub exclusive_maximum: bool,
    /// `minimum`.
    pub minimum: Option<f64>,
    /// `exclusiveMinimum`.
    pub exclusive_minimum: bool,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// `maxLength`, in characters.
    pub max_length: Option<i64>,
    /// `minLength`, in characters.
    pub min_length: Option<i64>,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `minItems`.
    pub min_items: Option<i64>,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// `minProperties`.
    pub min_properties: Option<i64>,
    /// `pattern`.
    pub pattern: Option<Pattern>,
    /// `format`, such as `date-time`.
    pub format: Option<Format>,
    /// `enum`; empty if any value is allowed.
    pub values: Box<[Value]>,
    /// `required`.
    pub required: Box<[Box<str>]>,
    /// `x-kubernetes-validations`.
    pub rules: Box<[Rule]>,
    /// `allOf`.
    pub all_of: Box<[Node]>,
    /// `anyOf`.
    pub any_of: Box<[Node]>,
    /// `oneOf`.
    pub one_of: Box<[Node]>,
    /// `not`.
    pub not: Option<Box<Node>>,
}
