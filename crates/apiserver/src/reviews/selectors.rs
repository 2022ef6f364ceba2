//! Validation of the selectors in resource attributes of access reviews.

use model::error::FieldError;
use model::names::{label_value, qualified_name};
use model::object::text_in;
use model::selector::{field, label};
use serde_json::Value;

const BOTH: [&str; 2] = ["fieldSelector", "labelSelector"];

/// The validation errors of the selectors.
pub(super) fn problems(attributes: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in BOTH {
        let Some(selector) = attributes.get(name).filter(|selector| !selector.is_null()) else { continue };
        let path = format!("spec.resourceAttributes.{name}");
        let (raw, requirements) = (text_in(selector, "rawSelector"), requirements(selector));
        if !raw.is_empty() && !requirements.is_empty() {
            let detail = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(format!("{path}.rawSelector"), raw, detail));
        }
        if raw.is_empty() && requirements.is_empty() {
            let detail = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(format!("{path}.requirements"), &detail));
        }
        for (index, requirement) in requirements.iter().enumerate() {
            let path = format!("{path}.requirements[{index}]");
            errors.extend(bad_requirement(&path, requirement, name == "labelSelector"));
        }
    }
    errors
}

fn requirements(selector: &Value) -> &[Value] {
    selector.get("requirements").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn values(requirement: &Value) -> Vec<&str> {
    let values = requirement.get("values").and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Unknown operators are accepted: a newer client may know them.
fn bad_requirement(path: &str, requirement: &Value, is_label: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (key, values) = (text_in(requirement, "key"), values(requirement));
    if !is_label && key.is_empty() {
        errors.push(FieldError::required(format!("{path}.key"), "must be specified"));
    }
    match text_in(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{path}.values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{path}.values"), detail));
        }
        _ => {}
    }
    if is_label {
        let wrong = |path: String, value: &str, messages: Vec<String>| {
            let value = value.to_owned();
            messages
                .into_iter()
                .map(move |message| FieldError::invalid(path.clone(), value.as_str(), message))
        };
        errors.extend(wrong(format!("{path}.key"), key, qualified_name(key)));
        for (index, value) in values.iter().enumerate() {
            errors.extend(wrong(format!("{path}.values[{index}]"), value, label_value(value)));
        }
    }
    errors
}

/// Kubernetes' message about ignored requirements; empty if there are none.
pub(super) fn ignored(attributes: &Value) -> String {
    let mut ignored = Vec::new();
    for name in BOTH {
        let Some(selector) = attributes.get(name).filter(|selector| !selector.is_null()) else { continue };
        let (raw, is_label) = (text_in(selector, "rawSelector"), name == "labelSelector");
        let is_readable = raw.is_empty()
            || if is_label { label::parse(raw).is_ok() } else { field::parse(raw, &|_| true).is_ok() };
        let requirements = requirements(selector);
        let known = requirements.iter().filter(|requirement| is_known(requirement, is_label)).count();
        if !is_readable || known < requirements.len() {
            let partially = if known > 0 { "partially " } else { "" };
            ignored.push(format!("spec.resourceAttributes.{name} {partially}ignored due to parse error"));
        }
    }
    ignored.join("; ")
}

fn is_known(requirement: &Value, is_label: bool) -> bool {
    match text_in(requirement, "operator") {
        "In" | "NotIn" => is_label || values(requirement).len() == 1,
        "Exists" | "DoesNotExist" => is_label,
        _ => false,
    }
}
