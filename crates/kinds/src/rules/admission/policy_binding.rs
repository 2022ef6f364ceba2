//! ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_subdomain, path_segment};
use model::object::{entries, maps, text, texts, value};
use serde_json::Value;

use super::GROUP;
use super::matching::{bad_match_resources, bad_mutating_operations, default_match_resources};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::label_selector::{bad_label_selector, invalid};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS: [&str; 2] = ["Deny", "Allow"];

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "ValidatingAdmissionPolicyBinding",
    default: |object| {
        let resources = object.get_mut("spec").and_then(|spec| spec.get_mut("matchResources"));
        if let Some(Value::Object(resources)) = resources {
            default_match_resources(resources);
        }
    },
    validate_create: validate,
    validate_update: |new, _| validate(new),
    counts_generations: true,
    unconditional_update: false,
    columns: &[
        NAME,
        Column::new("PolicyName", "string", "The policy that it binds."),
        Column::new("ParamRef", "string", "The reference to its parameters."),
        AGE,
    ],
    cells: |object, now| {
        let policy = text(object, &["spec", "policyName"]);
        vec![name(object), policy.into(), shown_parameters(object).into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

/// The rules of MutatingAdmissionPolicyBinding, which has no actions.
pub(super) const MUTATING: KindRules = KindRules {
    kind: "MutatingAdmissionPolicyBinding",
    validate_create: validate_mutating,
    validate_update: |new, _| validate_mutating(new),
    ..RULES
};

fn shown_parameters(object: &Object) -> String {
    let Some(reference) = value(object, &["spec", "paramRef"]).and_then(Value::as_object) else {
        return "<unset>".to_owned();
    };
    match (text(reference, &["namespace"]), text(reference, &["name"])) {
        (_, "") => shown_selector(reference),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// A selector as Go formats it.
fn shown_selector(reference: &Object) -> String {
    let Some(selector) = value(reference, &["selector"]).and_then(Value::as_object) else {
        return "<unset>".to_owned();
    };
    let mut labels: Vec<String> = entries(selector, &["matchLabels"])
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    labels.sort_unstable();
    let expression = |(_, expression): (usize, &Object)| {
        let (key, operator) = (text(expression, &["key"]), text(expression, &["operator"]));
        let values = texts(expression, &["values"]).join(" ");
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    };
    let expressions: String = maps(selector, &["matchExpressions"]).map(expression).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}",
        labels.concat()
    )
}

fn validate(object: &Object) -> Vec<FieldError> {
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return Vec::new() };
    let mut errors = bad_binding(spec);
    errors.extend(bad_actions(&Path::root("spec.validationActions"), &texts(spec, &["validationActions"])));
    errors
}

fn validate_mutating(object: &Object) -> Vec<FieldError> {
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return Vec::new() };
    let mut errors = bad_binding(spec);
    if let Some(resources) = value(spec, &["matchResources"]).and_then(Value::as_object) {
        errors.extend(bad_mutating_operations(&Path::root("spec.matchResources"), resources));
    }
    errors
}

fn bad_binding(spec: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match text(spec, &["policyName"]) {
        "" => errors.push(FieldError::required("spec.policyName", "")),
        name => errors.extend(invalid(&Path::root("spec.policyName"), name, dns1123_subdomain(name))),
    }
    if let Some(reference) = value(spec, &["paramRef"]).and_then(Value::as_object) {
        errors.extend(bad_reference(&Path::root("spec.paramRef"), reference));
    }
    if let Some(resources) = value(spec, &["matchResources"]).and_then(Value::as_object) {
        errors.extend(bad_match_resources(&Path::root("spec.matchResources"), resources));
    }
    errors
}

fn bad_reference(path: &Path<'_>, reference: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(reference, &["name"]);
    let selector = value(reference, &["selector"]).filter(|selector| selector.is_object());
    let both =
        |field: &str| FieldError::forbidden(path.field(field), "name and selector are mutually exclusive");
    if !name.is_empty() {
        errors.extend(invalid(&path.field("name"), name, path_segment(name)));
        errors.extend(selector.map(|_| both("name")));
    }
    errors.extend(bad_label_selector(&path.field("selector"), selector));
    match (name.is_empty(), selector) {
        (false, Some(_)) => errors.push(both("selector")),
        (true, None) => {
            errors.push(FieldError::required(path, "one of name or selector must be specified"));
        }
        _ => {}
    }
    let path = path.field("parameterNotFoundAction");
    match text(reference, &["parameterNotFoundAction"]) {
        "" => errors.push(FieldError::required(path, "")),
        action if NOT_FOUND_ACTIONS.contains(&action) => {}
        action => errors.push(FieldError::not_supported(path, action, &NOT_FOUND_ACTIONS)),
    }
    errors
}

fn bad_actions(path: &Path<'_>, actions: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        let path = path.at(index);
        if !ACTIONS.contains(action) {
            errors.push(FieldError::not_supported(path, *action, &ACTIONS));
        }
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(path, *action));
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in \
                      the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, actions.to_vec(), detail));
    }
    if actions.is_empty() {
        errors.push(FieldError::required(path, "at least one validation action is required"));
    }
    errors
}
