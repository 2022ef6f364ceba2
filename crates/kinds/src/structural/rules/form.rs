//! Validates the properties of rules other than their expressions.

use model::error::FieldError;

use super::Rule;
use crate::structural::{field_path, node::Node};

/// The valid values of `reason`.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The errors of a rule at `path`; `node` is its schema node.
pub(super) fn check(rule: &Rule, path: &str, node: &Node) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = |name: &str| format!("{path}.{name}");
    let (text, message) = (rule.rule.trim(), rule.message.trim());
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    if text.is_empty() {
        errors.push(FieldError::required(field("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        errors.push(FieldError::invalid(field("message"), &*rule.message, "must be non-empty if specified"));
    } else if has_breaks(message) {
        errors.push(FieldError::invalid(field("message"), &*rule.message, "must not contain line breaks"));
    } else if has_breaks(text) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(field("message"), detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(field("messageExpression"), detail));
    }
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
        errors.push(FieldError::not_supported(field("reason"), reason, &REASONS));
    }
    if !rule.field_path.is_empty() {
        let mut wrong = |is_wrong: bool, detail: &str| {
            if is_wrong {
                errors.push(FieldError::invalid(field("fieldPath"), &*rule.field_path, detail));
            }
        };
        wrong(rule.field_path.trim().is_empty(), "must be non-empty if specified");
        wrong(has_breaks(&rule.field_path), "must not contain line breaks");
        wrong(field_path::resolve(node, &rule.field_path, true).is_err(), "must be a valid path");
    }
    errors
}
