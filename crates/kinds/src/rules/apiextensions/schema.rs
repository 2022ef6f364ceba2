//! The schema of a version: structural, with valid defaults, within the supported subset of OpenAPI.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{is_true, text};
use serde_json::Value;

use super::shown::shown_schema;
use super::{openapi, structural};
use crate::structural::{Node, bad_defaults, rules};

/// The error limit of a schema; validation stops there.
pub const ERRORS_MAX: usize = 1000;

/// The fields that a root schema with a status subresource may have, by their Go names.
const AT_ROOT_WITH_STATUS: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum \
                                   ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
                                   MultipleOf Required Items Properties ExternalDocs Example \
                                   XPreserveUnknownFields XValidations]";

/// The forbidden fields of such a root schema: before the type and after it in Go's order.
const FORBIDDEN_BEFORE_TYPE: [&str; 3] = ["id", "$schema", "$ref"];
const FORBIDDEN_BEHIND_TYPE: [&str; 19] = [
    "nullable",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// Validates a schema at a path.
pub fn bad_schema(path: &Path<'_>, schema: &Object, has_status: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status {
        errors.extend(bad_root(path, schema));
    }
    if is_true(schema, &["nullable"]) {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(path.field("nullable"), detail));
    }
    let unsupported = unsupported_field(schema);
    let node = Node::of_schema(schema);
    let mut is_sound = unsupported.is_none();
    if is_sound {
        let mut unsound = structural::bad_structure(schema, path);
        if unsound.is_empty() {
            unsound = bad_defaults(&node, path);
        }
        is_sound = unsound.is_empty();
        errors.extend(unsound);
    }
    errors.extend(openapi::bad_openapi(schema, path));
    let of_rules = rules::check(&node, &path.to_string(), &errors, is_sound);
    errors.extend(of_rules);
    match unsupported.filter(|_| errors.is_empty()) {
        Some(problem) => vec![FieldError::invalid(path, "", problem)],
        None => errors,
    }
}

fn bad_root(path: &Path<'_>, schema: &Object) -> Option<FieldError> {
    let refuse = || {
        let detail = format!(
            "only {AT_ROOT_WITH_STATUS} fields are allowed at the root of the schema if the status subresource is \
             enabled"
        );
        FieldError::invalid(path, "", detail).showing(&shown_schema(schema))
    };
    if FORBIDDEN_BEFORE_TYPE.iter().any(|key| schema.contains_key(*key)) {
        return Some(refuse());
    }
    let kind = text(schema, &["type"]);
    if !kind.is_empty() && kind != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is \
                      enabled";
        return Some(FieldError::invalid(path.field("type"), kind, detail));
    }
    FORBIDDEN_BEHIND_TYPE.iter().any(|key| schema.contains_key(*key)).then(refuse)
}

/// The reason why a schema cannot be converted to a structural one; most have an error of their own.
fn unsupported_field(schema: &Object) -> Option<String> {
    let mut problem = None;
    openapi::visit(schema, &mut |schema| {
        let names = [
            ("id", "id"),
            ("$schema", "schema"),
            ("$ref", "$ref"),
            ("patternProperties", "patternProperties"),
            ("dependencies", "dependencies"),
            ("additionalItems", "additionalItems"),
            ("definitions", "definitions"),
        ];
        let found = names.iter().find(|(key, _)| schema.contains_key(*key));
        let found = found.map(|(_, name)| format!("OpenAPIV3Schema '{name}' is not supported"));
        let is_list = schema.get("items").is_some_and(Value::is_array);
        let list = is_list.then(|| "OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        let is_pruned = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false));
        let pruned = is_pruned.then(|| {
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned()
        });
        problem = problem.take().or(found).or(list).or(pruned);
    });
    problem
}
