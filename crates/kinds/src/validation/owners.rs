//! Validation of `metadata.ownerReferences`.

use model::error::FieldError;
use model::object::text_in;
use serde_json::Value;

use super::Metadata;

const PATH: &str = "metadata.ownerReferences";

pub(super) fn check(metadata: Metadata<'_>) -> Vec<FieldError> {
    let references = metadata.get("ownerReferences").as_array().map(Vec::as_slice).unwrap_or_default();
    let mut errors = Vec::new();
    let mut controller = None;
    for reference in references {
        errors.extend(check_reference(reference));
        if reference.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        match controller {
            None => controller = Some(reference),
            Some(first) => {
                let named =
                    |reference| format!("{}/{}", text_in(reference, "kind"), text_in(reference, "name"));
                let (first, name) = (named(first), named(reference));
                let list: Vec<String> = references.iter().map(written).collect();
                let detail = format!(
                    "Only one reference can have Controller set to true. \
                     Found \"true\" in references for {first} and {name}"
                );
                errors.push(with_written_value(&format!("[{}]", list.join(",")), &detail));
            }
        }
    }
    errors
}

fn check_reference(reference: &Value) -> Vec<FieldError> {
    let [api_version, kind, name, uid] =
        ["apiVersion", "kind", "name", "uid"].map(|key| text_in(reference, key));
    let version = match api_version.split_once('/') {
        None => api_version,
        Some((_, version)) if !version.contains('/') => version,
        Some(_) => "",
    };
    let mut errors = Vec::new();
    if version.is_empty() {
        let detail = "version must not be empty";
        errors.push(FieldError::invalid(format!("{PATH}.apiVersion"), api_version, detail));
    }
    for (key, value) in [("kind", kind), ("name", name), ("uid", uid)] {
        if value.is_empty() {
            errors.push(FieldError::invalid(format!("{PATH}.{key}"), value, "must not be empty"));
        }
    }
    // Events are too short-lived to own objects.
    if ["v1", "/v1"].contains(&api_version) && kind == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(with_written_value(&written(reference), detail));
    }
    errors
}

/// Writes the value by hand: its keys must be in Kubernetes' order, not sorted.
fn with_written_value(value: &str, detail: &str) -> FieldError {
    FieldError { value: None, ..FieldError::invalid(PATH, "", format!("{value}: {detail}")) }
}

fn written(reference: &Value) -> String {
    let texts =
        ["apiVersion", "kind", "name", "uid"].map(|key| (key, Some(Value::from(text_in(reference, key)))));
    let flags = ["controller", "blockOwnerDeletion"];
    let flags = flags.map(|key| (key, reference.get(key).filter(|flag| flag.is_boolean()).cloned()));
    let fields: Vec<String> = texts
        .into_iter()
        .chain(flags)
        .filter_map(|(key, value)| value.map(|value| format!("\"{key}\":{value}")))
        .collect();
    format!("{{{}}}", fields.join(","))
}
