//! Whether the defaults of a schema are what the schema demands.

use serde_json::{Map, Value};

use super::at::At;
use super::node::Node;
use super::prune::{META_FIELDS, prune_value};
use super::rules::Defaults;
use super::{metadata, validate};
use crate::error::FieldError;

/// What is wrong with the defaults of a structural schema.
pub fn bad_defaults(root: &Node, at: &At<'_>) -> Vec<FieldError> {
    let mut visit = Visit { errors: Vec::new(), rules: Defaults::unspent() };
    visit.place(root, true, None, at);
    visit.errors
}

/// The way from an object with kind and version to something in its kind, version or metadata.
struct Way<'a> {
    parent: Option<&'a Way<'a>>,
    /// The name of a field; `None` for an item of a list.
    step: Option<&'a str>,
}

impl Way<'_> {
    /// The object around a value, which has nothing else but a kind and a version.
    fn object_around(&self, value: Value) -> Map<String, Value> {
        let mut value = match self.step {
            Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
            None => Value::Array(vec![value]),
        };
        let mut way = self;
        while let Some(parent) = way.parent {
            value = match parent.step {
                Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
                None => Value::Array(vec![value]),
            };
            way = parent;
        }
        let mut object = value.as_object().cloned().unwrap_or_default();
        object.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        object.entry("kind").or_insert_with(|| "Validation".into());
        object
    }
}

/// What was found so far.
struct Visit {
    errors: Vec<FieldError>,
    rules: Defaults,
}

impl Visit {
    /// Visits a place of a schema; `way` leads there if it is inside of kind, version or metadata.
    fn place(&mut self, node: &Node, is_root: bool, way: Option<&Way<'_>>, at: &At<'_>) {
        let is_resource = is_root || node.embedded;
        let way = way.filter(|_| !is_resource);
        if let Some(default) = &node.default {
            self.default(node, is_resource, default, way, &At::field(Some(at), "default"));
        }
        if self.rules.are_exhausted() {
            return;
        }
        if let Some(items) = &node.items {
            let inner = way.map(|way| Way { parent: Some(way), step: None });
            self.place(items, false, inner.as_ref(), &At::field(Some(at), "items"));
        }
        let properties = At::field(Some(at), "properties");
        for (name, field) in &node.fields {
            let is_meta = is_resource && META_FIELDS.contains(&&**name);
            let inner = (is_meta || way.is_some()).then_some(Way { parent: way, step: Some(name) });
            self.place(field, false, inner.as_ref(), &At::key(Some(&properties), name));
        }
    }

    fn default(
        &mut self,
        node: &Node,
        is_resource: bool,
        default: &Value,
        way: Option<&Way<'_>>,
        at: &At<'_>,
    ) {
        let unsound = match way {
            Some(way) => bad_in_metadata(node, default, way, at),
            None => {
                self.errors.extend(unpruned(node, is_resource, default, at));
                bad_default(node, is_resource, default, at)
            }
        };
        let of_rules = match unsound.as_slice() {
            [] => self.rules.check(node, is_resource, default, at),
            _ => Vec::new(),
        };
        self.errors.extend(unsound.into_iter().chain(of_rules));
    }
}

/// A default that would lose something.
fn unpruned(node: &Node, is_resource: bool, default: &Value, at: &At<'_>) -> Option<FieldError> {
    let mut pruned = default.clone();
    prune_value(node, is_resource, &mut pruned);
    let refuse = || FieldError::invalid(at.to_string(), default.clone(), "must not have unknown fields");
    (pruned != *default).then(refuse)
}

/// What is wrong with a default otherwise.
fn bad_default(node: &Node, is_resource: bool, default: &Value, at: &At<'_>) -> Vec<FieldError> {
    let mut read = default.clone();
    if let Err(error) = metadata::read_value(node, is_resource, &mut read, at) {
        return vec![error];
    }
    let embedded = validate::embedded(node, is_resource, &read, at);
    if embedded.is_empty() { validate::value(node, &read, &at.to_string()) } else { embedded }
}

/// What is wrong with a default that becomes a part of metadata.
fn bad_in_metadata(node: &Node, default: &Value, way: &Way<'_>, at: &At<'_>) -> Vec<FieldError> {
    let mut object = way.object_around(default.clone());
    let refuse = |problem: String| {
        let detail = format!("must result in valid metadata: {problem}");
        vec![FieldError::invalid(at.to_string(), default.clone(), detail)]
    };
    let given = object.get("metadata").cloned().unwrap_or_default();
    if let Err(mismatch) = metadata::read(&mut object) {
        return refuse(FieldError::invalid("metadata", given, mismatch.0).to_string());
    }
    let problems: Vec<String> = validate::resource(&object).iter().map(ToString::to_string).collect();
    match problems.as_slice() {
        [] => validate::value(node, default, &at.to_string()),
        [one] => refuse(one.clone()),
        several => refuse(format!("[{}]", several.join(", "))),
    }
}
