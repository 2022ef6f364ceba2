//! Compiles the JSON of a schema.

use std::mem::take;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::checks::Checks;
use super::format::Format;
use super::node::{ListType, Node, ValueType, Values};
use super::pattern::Pattern;
use super::prune;
use super::read::{RawNode, SchemaOrFlag};
use super::rules::Rule;

/// Compiles the schema of an object; invalid JSON has no constraints.
pub fn root<'de, D: Deserializer<'de>>(schema: D) -> Node {
    let mut root = SchemaOrFlag::deserialize(schema).ok().and_then(SchemaOrFlag::node).unwrap_or_default();
    prune_defaults(&mut root);
    root
}

impl Node {
    /// Compiles a schema that may be invalid, with unpruned defaults.
    pub fn of_schema(schema: &Map<String, Value>) -> Self {
        SchemaOrFlag::deserialize(schema).ok().and_then(SchemaOrFlag::node).unwrap_or_default()
    }
}

/// Compiles one schema node.
pub(super) fn node(mut place: RawNode) -> Node {
    place.fields.sort_by(|a, b| a.0.cmp(&b.0));
    let schema = &place.rest;
    let is = |key| schema.get(key) == Some(&Value::Bool(true));
    Node {
        kind: text(schema, "type").and_then(ValueType::named),
        nullable: is("nullable"),
        int_or_string: is("x-kubernetes-int-or-string"),
        preserve_unknown: is("x-kubernetes-preserve-unknown-fields"),
        embedded: is("x-kubernetes-embedded-resource"),
        atomic_map: text(schema, "x-kubernetes-map-type") == Some("atomic"),
        list_type: list_type(schema),
        default: schema.get("default").filter(|value| !value.is_null()).cloned().map(Box::new),
        checks: checks(&mut place).map(Box::new),
        fields: place.fields.into(),
        values: place.values,
        items: place.items.map(Box::new),
    }
}

fn list_type(schema: &Map<String, Value>) -> ListType {
    match text(schema, "x-kubernetes-list-type") {
        Some("atomic") => ListType::Atomic,
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(schema, "x-kubernetes-list-map-keys")),
        _ => ListType::Unset,
    }
}

/// The constraints of a node, if there are any.
fn checks(place: &mut RawNode) -> Option<Checks> {
    const KEYS: [&str; 16] = [
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "multipleOf",
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "maxProperties",
        "minProperties",
        "pattern",
        "format",
        "enum",
        "required",
        "x-kubernetes-validations",
    ];
    let schema = &place.rest;
    let junctions = [&place.all_of, &place.any_of, &place.one_of];
    let has_junctions = place.not.is_some() || junctions.iter().any(|nodes| !nodes.is_empty());
    if !has_junctions && !KEYS.iter().any(|key| schema.contains_key(*key)) {
        return None;
    }
    let is = |key| schema.get(key) == Some(&Value::Bool(true));
    let float = |key| schema.get(key).and_then(Value::as_f64);
    let count = |key| schema.get(key).and_then(Value::as_i64);
    Some(Checks {
        maximum: float("maximum"),
        exclusive_maximum: is("exclusiveMaximum"),
        minimum: float("minimum"),
        exclusive_minimum: is("exclusiveMinimum"),
        multiple_of: float("multipleOf"),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        max_properties: count("maxProperties"),
        min_properties: count("minProperties"),
        pattern: text(schema, "pattern").filter(|text| !text.is_empty()).map(Pattern::new),
        format: text(schema, "format").filter(|text| !text.is_empty()).map(Format::named),
        values: schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default().into(),
        required: texts(schema, "required"),
        rules: Rule::read(schema),
        all_of: take(&mut place.all_of).into(),
        any_of: take(&mut place.any_of).into(),
        one_of: take(&mut place.one_of).into(),
        not: place.not.take().map(Box::new),
    })
}

fn text<'a>(schema: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

fn texts(schema: &Map<String, Value>, key: &str) -> Box<[Box<str>]> {
    let texts = schema.get(key).and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).map(Into::into).collect()
}

/// Prunes the defaults of a schema.
fn prune_defaults(node: &mut Node) {
    if let Some(mut default) = node.default.take() {
        prune::prune_value(node, node.embedded, &mut default);
        node.default = Some(default);
    }
    for (_, field) in &mut node.fields {
        prune_defaults(field);
    }
    if let Some(items) = &mut node.items {
        prune_defaults(items);
    }
    if let Values::Of(values) = &mut node.values {
        prune_defaults(values);
    }
}
