//! Checks that a schema is structural: types are specified outside `anyOf` and the like, which only restrict values.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{is_true, text};
use serde_json::{Value, json};

use super::schema::ERRORS_MAX;
use crate::structural::Pattern;

/// The level of a schema node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Structural errors, sorted by message.
pub fn bad_structure(schema: &Object, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, at, &mut errors);
    complete(schema, Some(schema), at, at, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// The schemas in a list.
fn list<'a>(schema: &'a Object, key: &str) -> impl Iterator<Item = (usize, &'a Object)> {
    let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
    list.enumerate().filter_map(|(index, item)| Some((index, item.as_object()?)))
}

fn one<'a>(schema: &'a Object, key: &str) -> Option<&'a Object> {
    schema.get(key).and_then(Value::as_object)
}

fn fields(schema: &Object) -> impl Iterator<Item = (&str, &Object)> {
    let fields = one(schema, "properties").into_iter().flatten();
    fields.filter_map(|(name, field)| Some((name.as_str(), field.as_object()?)))
}

fn has_fields(schema: &Object) -> bool {
    fields(schema).next().is_some()
}

fn at_field(at: &Path<'_>, keys: [&str; 2]) -> String {
    let properties = at.field("properties");
    properties.key(keys[0]).field(keys[1]).to_string()
}

fn invariants(schema: &Object, level: Level, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() > ERRORS_MAX {
        return;
    }
    let kind = text(schema, &["type"]);
    match one(schema, "items") {
        None if kind == "array" => errors.push(FieldError::required(at.field("items"), "must be specified")),
        None => {}
        Some(items) => invariants(items, Level::Item, &at.field("items"), errors),
    }
    for (name, field) in fields(schema) {
        let properties = at.field("properties");
        invariants(field, Level::Field, &properties.key(name), errors);
    }
    if schema.contains_key("additionalProperties") && level == Level::Root {
        let detail = "must not be used at the root";
        errors.push(FieldError::forbidden(at.field("additionalProperties"), detail));
    }
    if let Some(values) = one(schema, "additionalProperties") {
        invariants(values, Level::Field, &at.field("additionalProperties"), errors);
    }
    extensions(schema, at, errors);
    let is_int_or_string = |any_of: Option<&Value>| {
        any_of.is_some_and(|any_of| *any_of == json!([{"type": "integer"}, {"type": "string"}]))
    };
    let skips_any = is_int_or_string(schema.get("anyOf"));
    let skips_first_all =
        is_int_or_string(schema.get("allOf").and_then(|all_of| all_of.get(0)?.get("anyOf")));
    value_checks(schema, skips_any, skips_first_all, level, at, errors);
    types(schema, level, at, errors);
}

fn extensions(schema: &Object, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !is_true(schema, &["x-kubernetes-int-or-string"]) {
        return;
    }
    for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if is_true(schema, &[key]) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(at.field(key), true, detail));
        }
    }
}

/// Checks the types, and the schemas of kind, version and metadata.
fn types(schema: &Object, level: Level, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let is = |key: &str| is_true(schema, &[key]);
    let kind = text(schema, &["type"]);
    let is_embedded = is("x-kubernetes-embedded-resource");
    if is_embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at.field("type"), detail),
            kind => FieldError::invalid(at.field("type"), kind, detail),
        });
    } else if kind.is_empty()
        && !is("x-kubernetes-int-or-string")
        && !is("x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at.field("type"), detail));
    }
    if is_embedded && schema.contains_key("additionalProperties") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(at.field("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at.field("type"), kind, "must be object at the root"));
    }
    if level == Level::Root || is_embedded {
        for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            let field = one(schema, "properties").and_then(|fields| one(fields, name));
            let found = field.map(|field| text(field, &["type"])).filter(|found| *found != expected);
            errors.extend(found.map(|found| {
                FieldError::invalid(at_field(at, [name, "type"]), found, format!("must be {expected}"))
            }));
        }
    }
    let metadata = one(schema, "properties").and_then(|fields| one(fields, "metadata"));
    if level == Level::Root && metadata.is_some_and(|metadata| !restricts_names_only(metadata)) {
        let properties = at.field("properties");
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(properties.key("metadata"), detail));
    }
    if is_embedded && !is("x-kubernetes-preserve-unknown-fields") && !has_fields(schema) {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(at.field("properties"), detail));
    }
}

fn restricts_names_only(metadata: &Object) -> bool {
    let names_only = fields(metadata).all(|(name, _)| matches!(name, "name" | "generateName"));
    let ignored = ["type", "default", "properties", "externalDocs", "example"];
    names_only && metadata.keys().all(|key| ignored.contains(&key.as_str()))
}

/// Checks value validations at any depth of `anyOf` and the like.
fn value_checks(
    schema: &Object,
    skips_any: bool,
    skips_first_all: bool,
    level: Level,
    at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && skips_any {
            continue;
        }
        let place = at.field(key);
        for (index, inner) in list(schema, key) {
            let skips_any = key == "allOf" && skips_first_all && index == 0;
            nested(inner, skips_any, level, &place.at(index), errors);
        }
    }
    if let Some(not) = one(schema, "not") {
        nested(not, false, level, &at.field("not"), errors);
    }
    let pattern = Pattern::new(text(schema, &["pattern"]));
    if let Some(problem) = pattern.problem() {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        let place = at.field("pattern");
        errors.push(FieldError::invalid(place, pattern.to_string(), detail));
    }
}

/// Reports fields that are forbidden in value validations.
fn nested(schema: &Object, skips_any: bool, level: Level, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() > ERRORS_MAX {
        return;
    }
    value_checks(schema, skips_any, false, level, at, errors);
    if let Some(items) = one(schema, "items") {
        nested(items, false, level, &at.field("items"), errors);
    }
    let properties = at.field("properties");
    for (name, field) in fields(schema) {
        nested(field, false, Level::Field, &properties.key(name), errors);
    }
    let forbidden = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (key, detail) in forbidden {
        if schema.get(key).is_some_and(|value| *value != Value::Bool(false)) {
            errors.push(FieldError::forbidden(at.field(key), detail));
        }
    }
    if fields(schema).any(|(name, _)| name == "metadata") {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(properties.key("metadata"), detail));
    }
}

/// Checks that all fields of value validations are specified in the structural schema, too.
fn complete(
    values: &Object,
    schema: Option<&Object>,
    at: &Path<'_>,
    values_at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = one(values, "not") {
        complete_nested(not, schema, at, &values_at.field("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let place = values_at.field(key);
        for (index, inner) in list(values, key) {
            complete_nested(inner, schema, at, &place.at(index), errors);
        }
    }
}

fn complete_nested(
    values: &Object,
    schema: Option<&Object>,
    at: &Path<'_>,
    values_at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        let detail = format!("because it is defined in {values_at}");
        errors.push(FieldError::required(at, detail));
        return;
    };
    complete(values, Some(schema), at, values_at, errors);
    if let Some(items) = one(values, "items") {
        let places = (at.field("items"), values_at.field("items"));
        complete_nested(items, one(schema, "items"), &places.0, &places.1, errors);
    }
    let properties = (at.field("properties"), values_at.field("properties"));
    for (name, field) in fields(values) {
        let of_schema = one(schema, "properties").and_then(|fields| one(fields, name));
        let places = (properties.0.key(name), properties.1.key(name));
        complete_nested(field, of_schema, &places.0, &places.1, errors);
    }
}
