//! What a schema demands of a value beyond its type.

use serde_json::Value;

use super::format::Format;
use super::node::Node;
use super::pattern::Pattern;
use super::rules::Rule;

/// The demands of one place of a schema.
#[derive(Debug, Default)]
pub struct Checks {
    /// The greatest number.
    pub maximum: Option<f64>,
    /// Whether the greatest number itself is too great.
    pub exclusive_maximum: bool,
    /// The least number.
    pub minimum: Option<f64>,
    /// Whether the least number itself is too small.
    pub exclusive_minimum: bool,
    /// What a number is a multiple of.
    pub multiple_of: Option<f64>,
    /// How many characters a text has at most.
    pub max_length: Option<i64>,
    /// How many characters a text has at least.
    pub min_length: Option<i64>,
    /// How many items a list has at most.
    pub max_items: Option<i64>,
    /// How many items a list has at least.
    pub min_items: Option<i64>,
    /// How many fields an object has at most.
    pub max_properties: Option<i64>,
    /// How many fields an object has at least.
    pub min_properties: Option<i64>,
    /// What a text matches.
    pub pattern: Option<Pattern>,
    /// What a text is, such as `date-time`.
    pub format: Option<Format>,
    /// The values that are allowed; empty where any is.
    pub values: Box<[Value]>,
    /// The fields that have to be there.
    pub required: Box<[Box<str>]>,
    /// What else has to hold, in expressions.
    pub rules: Box<[Rule]>,
    /// All of them have to fit.
    pub all_of: Box<[Node]>,
    /// One of them has to fit, if there are any.
    pub any_of: Box<[Node]>,
    /// Exactly one of them has to fit, if there are any.
    pub one_of: Box<[Node]>,
    /// This must not fit.
    pub not: Option<Box<Node>>,
}
