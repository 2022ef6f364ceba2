//! The subset of OpenAPI that schemas may use.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{is_true, text};
use serde_json::Value;

use super::lists::bad_list_type;
use super::schema::ERRORS_MAX;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const META_FIELDS: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// The context of a schema node.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    /// The reason why a default is forbidden.
    no_default: Option<&'a str>,
    /// Whether it is inside kind, version or metadata of a resource.
    in_meta: bool,
    is_root: bool,
}

/// Validates a schema.
pub fn bad_openapi(schema: &Object, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(schema, at, Around { is_root: true, ..Around::default() }, &mut errors);
    errors
}

/// Visits a schema and all nested schemas.
pub fn visit<'a>(schema: &'a Object, see: &mut impl FnMut(&'a Object)) {
    see(schema);
    let mut inner = |value: &'a Value| {
        if let Some(schema) = value.as_object() {
            visit_boxed(schema, see);
        }
    };
    for key in ["items", "allOf", "anyOf", "oneOf", "not", "additionalProperties", "additionalItems"] {
        match schema.get(key) {
            Some(Value::Array(list)) => list.iter().for_each(&mut inner),
            Some(value) => inner(value),
            None => {}
        }
    }
    for key in ["properties", "patternProperties", "definitions", "dependencies"] {
        schema.get(key).and_then(Value::as_object).into_iter().flatten().for_each(|(_, value)| inner(value));
    }
}

/// Breaks the recursion of closure types in `visit`.
fn visit_boxed<'a>(schema: &'a Object, see: &mut dyn FnMut(&'a Object)) {
    visit(schema, &mut |schema| see(schema));
}

fn check(schema: &Object, at: &Path<'_>, around: Around<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() > ERRORS_MAX {
        return;
    }
    unsupported(schema, at, around, errors);
    if is_true(schema, &["uniqueItems"]) {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(at.field("uniqueItems"), detail));
    }
    check_fields(schema, at, around, errors);
    let inner = Around { is_root: false, ..around };
    if let Some(Value::Object(not)) = schema.get("not") {
        check(not, &at.field("not"), inner, errors);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        check_list(schema, key, at, inner, errors);
    }
    check_map(schema, "definitions", at, inner, errors);
    match schema.get("items") {
        Some(Value::Object(items)) => check(items, &at.field("items"), inner, errors),
        _ => check_list(schema, "items", at, inner, errors),
    }
    check_map(schema, "dependencies", at, inner, errors);
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let place = at.field("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(place, false, "must be true or undefined"));
    }
    bad_map_type(schema, at, errors);
    bad_list_type(schema, at, errors);
}

fn check_list(schema: &Object, key: &str, at: &Path<'_>, around: Around<'_>, errors: &mut Vec<FieldError>) {
    let place = at.field(key);
    let list = schema.get(key).and_then(Value::as_array).into_iter().flatten().enumerate();
    for (index, inner) in list.filter_map(|(index, inner)| Some((index, inner.as_object()?))) {
        check(inner, &place.at(index), around, errors);
    }
}

fn check_map(schema: &Object, key: &str, at: &Path<'_>, around: Around<'_>, errors: &mut Vec<FieldError>) {
    let place = at.field(key);
    let map = schema.get(key).and_then(Value::as_object).into_iter().flatten();
    for (name, inner) in map.filter_map(|(name, inner)| Some((name, inner.as_object()?))) {
        check(inner, &place.key(name), around, errors);
    }
}

fn check_fields(schema: &Object, at: &Path<'_>, around: Around<'_>, errors: &mut Vec<FieldError>) {
    let fields = schema.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty());
    let values = schema.get("additionalProperties");
    if fields.is_some() && values.is_some_and(|values| *values != Value::Bool(true)) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(at.field("additionalProperties"), detail));
    }
    if let Some(Value::Object(values)) = values {
        let forbidden = "inside additionalProperties applying to object metadata";
        let no_default = if around.in_meta { Some(forbidden) } else { around.no_default };
        let around = Around { no_default, is_root: false, ..around };
        check(values, &at.field("additionalProperties"), around, errors);
    }
    let is_resource = around.is_root || is_true(schema, &["x-kubernetes-embedded-resource"]);
    let properties = at.field("properties");
    for (name, field) in fields.into_iter().flatten() {
        let Some(field) = field.as_object() else { continue };
        let is_meta = is_resource && META_FIELDS.contains(&name.as_str());
        let top_level = format!("in top-level {name}");
        let no_default = if is_meta && around.is_root { Some(&*top_level) } else { around.no_default };
        let around = Around { no_default, in_meta: around.in_meta || is_meta, is_root: false };
        check(field, &properties.key(name), around, errors);
    }
}

/// Reports fields that Kubernetes does not support here.
fn unsupported(schema: &Object, at: &Path<'_>, around: Around<'_>, errors: &mut Vec<FieldError>) {
    let kind = text(schema, &["type"]);
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(at.field("type"), kind, &TYPES));
    }
    if let Some(reason) = around.no_default.filter(|_| schema.contains_key("default")) {
        errors.push(FieldError::forbidden(at.field("default"), format!("must not be set {reason}")));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if schema.contains_key(key) {
            errors.push(FieldError::forbidden(at.field(key), format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(at.field("type"), detail));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(at.field("items"), detail));
    }
    if around.in_meta && is_true(schema, &["x-kubernetes-embedded-resource"]) {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(at.field("x-kubernetes-embedded-resource"), detail));
    }
}

fn bad_map_type(schema: &Object, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) else { return };
    let detail = "must be object if x-kubernetes-map-type is specified";
    match text(schema, &["type"]) {
        "object" => {}
        "" => errors.push(FieldError::required(at.field("type"), detail)),
        kind => errors.push(FieldError::invalid(at.field("type"), kind, detail)),
    }
    let types = ["atomic", "granular"];
    if !types.contains(&map_type) {
        errors.push(FieldError::not_supported(at.field("x-kubernetes-map-type"), map_type, &types));
    }
}
