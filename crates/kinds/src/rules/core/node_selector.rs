//! Validation of node selectors.

use model::error::{FieldError, Path};
use model::names::{dns1123_subdomain, label_value, qualified_name};
use model::object::{items_in, text_in};
use serde_json::Value;

use crate::rules::common::invalid_for;

/// Validates a node selector.
pub fn bad_node_selector(path: &Path<'_>, selector: &Value) -> Vec<FieldError> {
    let path = path.field("nodeSelectorTerms");
    let terms = items_in(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        return vec![FieldError::required(path, "must have at least one node selector term")];
    }
    let each = terms.iter().enumerate();
    each.flat_map(|(index, term)| bad_node_term(&path.at(index), term)).collect()
}

/// Validates one term.
pub fn bad_node_term(path: &Path<'_>, term: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, requirement) in items_in(term, "matchExpressions").iter().enumerate() {
        errors.extend(bad_expression(&path.item("matchExpressions", index), requirement));
    }
    for (index, requirement) in items_in(term, "matchFields").iter().enumerate() {
        errors.extend(bad_field(&path.item("matchFields", index), requirement));
    }
    errors
}

fn bad_operator(path: &Path<'_>, operator: &str) -> FieldError {
    FieldError::invalid(path.field("operator"), operator, "not a valid selector operator")
}

fn bad_expression(path: &Path<'_>, requirement: &Value) -> Vec<FieldError> {
    let values = items_in(requirement, "values");
    let values_path = path.field("values");
    let mut errors = Vec::new();
    match (text_in(requirement, "operator"), values.len()) {
        ("In" | "NotIn", 0) => {
            let problem = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(values_path, problem));
        }
        ("In" | "NotIn", _) | ("Exists" | "DoesNotExist", 0) | ("Gt" | "Lt", 1) => {}
        ("Exists" | "DoesNotExist", _) => {
            let problem = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(values_path, problem));
        }
        ("Gt" | "Lt", _) => {
            let problem = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(values_path, problem));
        }
        (operator, _) => errors.push(bad_operator(path, operator)),
    }
    let key = text_in(requirement, "key");
    errors.extend(invalid_for(&path.field("key"), key, qualified_name(key)));
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid_for(&values_path.at(index), value, label_value(value)));
    }
    errors
}

fn bad_field(path: &Path<'_>, requirement: &Value) -> Vec<FieldError> {
    let values = items_in(requirement, "values");
    let mut errors = Vec::new();
    match text_in(requirement, "operator") {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let problem = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(path.field("values"), problem));
        }
        operator => errors.push(bad_operator(path, operator)),
    }
    let key = text_in(requirement, "key");
    if key != "metadata.name" {
        errors.push(FieldError::invalid(path.field("key"), key, "not a valid field selector key"));
        return errors;
    }
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid_for(&path.item("values", index), value, dns1123_subdomain(value)));
    }
    errors
}
