//! From the JSON of a schema to its compiled form.

use serde_json::{Map, Value};

use super::checks::Checks;
use super::format::Format;
use super::node::{Kind, ListType, Node, Values};
use super::pattern::Pattern;
use super::prune;
use super::rules::Rule;

/// Compiles the schema of an object.
pub fn root(schema: &Value) -> Node {
    let mut root = schema.as_object().map(node).unwrap_or_default();
    prune_defaults(&mut root);
    root
}

impl Node {
    /// Compiles a schema that need not be valid, with its defaults as they are.
    pub fn of_schema(schema: &Map<String, Value>) -> Self {
        node(schema)
    }
}

fn node(schema: &Map<String, Value>) -> Node {
    let is = |key| schema.get(key) == Some(&Value::Bool(true));
    let values = match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Values::Any,
        Some(Value::Bool(false)) => Values::Forbidden,
        Some(Value::Object(of)) => Values::Of(Box::new(node(of))),
        _ => Values::Closed,
    };
    let items = schema.get("items").and_then(Value::as_object).map(|items| Box::new(node(items)));
    Node {
        kind: text(schema, "type").and_then(Kind::named),
        nullable: is("nullable"),
        int_or_string: is("x-kubernetes-int-or-string"),
        preserve_unknown: is("x-kubernetes-preserve-unknown-fields"),
        embedded: is("x-kubernetes-embedded-resource"),
        atomic_map: text(schema, "x-kubernetes-map-type") == Some("atomic"),
        list_type: list_type(schema),
        fields: fields(schema),
        values,
        items,
        default: schema.get("default").filter(|value| !value.is_null()).cloned().map(Box::new),
        checks: checks(schema).map(Box::new),
    }
}

fn fields(schema: &Map<String, Value>) -> Box<[(Box<str>, Node)]> {
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fields = fields.filter_map(|(name, of)| Some((name.as_str().into(), node(of.as_object()?))));
    let mut fields: Vec<(Box<str>, Node)> = fields.collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields.into()
}

fn list_type(schema: &Map<String, Value>) -> ListType {
    match text(schema, "x-kubernetes-list-type") {
        Some("atomic") => ListType::Atomic,
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(schema, "x-kubernetes-list-map-keys")),
        _ => ListType::Unset,
    }
}

/// The demands beyond the type, if there are any.
fn checks(schema: &Map<String, Value>) -> Option<Checks> {
    const KEYS: [&str; 20] = [
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
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "x-kubernetes-validations",
    ];
    if !KEYS.iter().any(|key| schema.contains_key(*key)) {
        return None;
    }
    let is = |key| schema.get(key) == Some(&Value::Bool(true));
    let float = |key| schema.get(key).and_then(Value::as_f64);
    let count = |key| schema.get(key).and_then(Value::as_i64);
    let nodes = |key| {
        let nodes = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        nodes.filter_map(Value::as_object).map(node).collect()
    };
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
        all_of: nodes("allOf"),
        any_of: nodes("anyOf"),
        one_of: nodes("oneOf"),
        not: schema.get("not").and_then(Value::as_object).map(|not| Box::new(node(not))),
    })
}

fn text<'a>(schema: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

fn texts(schema: &Map<String, Value>, key: &str) -> Box<[Box<str>]> {
    let texts = schema.get(key).and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).map(Into::into).collect()
}

/// Drops from the defaults what the schema does not know.
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
