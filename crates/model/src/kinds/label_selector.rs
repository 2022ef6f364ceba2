//! Label selectors as objects hold them: labels and expressions that all have to match.

use serde_json::Value;

use super::object::{bad_labels, entries, items, text};
use crate::error::FieldError;
use crate::names::{label_value, qualified_name};

/// What is wrong with the selector at a path; nothing if there is none.
pub fn bad_label_selector(path: &str, selector: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(selector) = selector.and_then(Value::as_object) else { return errors };
    errors.extend(bad_labels(&format!("{path}.matchLabels"), entries(selector, &["matchLabels"])));
    for (index, expression) in items(selector, &["matchExpressions"]).iter().enumerate() {
        errors.extend(bad_requirement(&format!("{path}.matchExpressions[{index}]"), expression));
    }
    errors
}

fn bad_requirement(path: &str, requirement: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(requirement) = requirement.as_object() else { return errors };
    let values = items(requirement, &["values"]);
    match text(requirement, &["operator"]) {
        "In" | "NotIn" if values.is_empty() => {
            let rule = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{path}.values"), rule));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{path}.values"), rule));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        operator => {
            let path = format!("{path}.operator");
            errors.push(FieldError::invalid(path, operator, "not a valid selector operator"));
        }
    }
    let key = text(requirement, &["key"]);
    errors.extend(invalid(&format!("{path}.key"), key, qualified_name(key)));
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(&format!("{path}.values[{index}]"), value, label_value(value)));
    }
    errors
}

/// An error for each message about a text.
pub fn invalid(path: &str, value: &str, messages: Vec<String>) -> impl Iterator<Item = FieldError> {
    messages.into_iter().map(move |message| FieldError::invalid(path, value, message))
}
