//! Tolerations: which taints of nodes are put up with.

use crate::error::FieldError;
use crate::kinds::Object;
use crate::kinds::label_selector::invalid;
use crate::kinds::object::{has, text};
use crate::names::{label_value, qualified_name};

const OPERATORS: [&str; 2] = ["Equal", "Exists"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with a toleration.
pub fn bad_toleration(path: &str, toleration: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let at = |field: &str| format!("{path}.{field}");
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| text(toleration, &[field]));
    if !key.is_empty() {
        errors.extend(invalid(&at("key"), key, qualified_name(key)));
    }
    if key.is_empty() && operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(at("operator"), operator, detail));
    }
    if has(toleration, &["tolerationSeconds"]) && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(at("effect"), effect, detail));
    }
    match operator {
        "Equal" | "" => {
            let wrong = label_value(value);
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(at("operator"), value, wrong.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(at("operator"), value, detail));
        }
        "Exists" => {}
        _ => errors.push(FieldError::not_supported(at("operator"), operator, &OPERATORS)),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(at("effect"), effect, &EFFECTS));
    }
    errors
}
