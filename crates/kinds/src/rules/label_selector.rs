//! Validation of label selectors.

use model::error::{FieldError, Path};
use model::names::{label_value, qualified_name};
use model::object::{entries, items, text};
use serde_json::Value;

use crate::rules::common::bad_labels;

/// Validates the selector at a path; a missing one is valid.
pub fn bad_label_selector(path: &Path<'_>, selector: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(selector) = selector.and_then(Value::as_object) else { return errors };
    errors.extend(bad_labels(&path.field("matchLabels"), entries(selector, &["matchLabels"])));
    for (index, expression) in items(selector, &["matchExpressions"]).iter().enumerate() {
        errors.extend(bad_requirement(&path.item("matchExpressions", index), expression));
    }
    errors
}

fn bad_requirement(path: &Path<'_>, requirement: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(requirement) = requirement.as_object() else { return errors };
    let values = items(requirement, &["values"]);
    match text(requirement, &["operator"]) {
        "In" | "NotIn" if values.is_empty() => {
            let rule = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(path.field("values"), rule));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(path.field("values"), rule));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        operator => {
            let path = path.field("operator");
            errors.push(FieldError::invalid(path, operator, "not a valid selector operator"));
        }
    }
    let key = text(requirement, &["key"]);
    errors.extend(invalid(&path.field("key"), key, qualified_name(key)));
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(&path.item("values", index), value, label_value(value)));
    }
    errors
}

/// An error for each message about a value.
pub fn invalid(path: &Path<'_>, value: &str, messages: Vec<String>) -> impl Iterator<Item = FieldError> {
    messages.into_iter().map(move |message| FieldError::invalid(path, value, message))
}
