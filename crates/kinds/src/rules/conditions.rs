//! Validation of `metav1.Condition`: unique types, a known status, a reason and a time.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::names::qualified_name;
use model::object::{has, number, text};
use serde_json::Value;

use super::label_selector::invalid;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON_LENGTH_MAX: usize = 1024;
const MESSAGE_LENGTH_MAX: usize = 32 * 1024;

/// Validates the conditions at a path.
pub fn bad_conditions(path: &Path<'_>, conditions: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().filter_map(Value::as_object).enumerate() {
        let path = path.at(index);
        let kind = text(condition, &["type"]);
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(path.field("type"), kind));
        }
        errors.extend(bad_condition(&path, condition));
    }
    errors
}

fn bad_condition(path: &Path<'_>, condition: &Object) -> Vec<FieldError> {
    let kind = text(condition, &["type"]);
    let mut errors: Vec<FieldError> = invalid(&path.field("type"), kind, qualified_name(kind)).collect();
    let status = text(condition, &["status"]);
    if !STATUSES.contains(&status) {
        errors.push(FieldError::not_supported(path.field("status"), status, &STATUSES));
    }
    let generation = number(condition, &["observedGeneration"]);
    if generation < 0 {
        let rule = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(path.field("observedGeneration"), generation, rule));
    }
    if !has(condition, &["lastTransitionTime"]) {
        errors.push(FieldError::required(path.field("lastTransitionTime"), ""));
    }
    let reason = text(condition, &["reason"]);
    if reason.is_empty() {
        errors.push(FieldError::required(path.field("reason"), ""));
    } else if !is_reason(reason) {
        let rule = "a condition reason must start with alphabetic character, optionally followed by a string of \
                    alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                    'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex \
                    used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
        errors.push(FieldError::invalid(path.field("reason"), reason, rule));
    }
    for (field, length_max) in [("reason", REASON_LENGTH_MAX), ("message", MESSAGE_LENGTH_MAX)] {
        if text(condition, &[field]).len() > length_max {
            errors.push(FieldError::too_long(path.field(field), length_max));
        }
    }
    errors
}

fn is_reason(reason: &str) -> bool {
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(|c: char| c == '_' || c.is_ascii_alphanumeric())
        && reason.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte))
}
