//! Affinity, tolerations and topology spread constraints.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, label_value, qualified_name};
use model::object::{entries, items, number, text};
use serde_json::{Value, json};

use super::fields::{Errors, invalid, object, objects, one_of, set_number, set_text, texts};
use crate::rules::core::node_selector::{bad_node_selector, bad_node_term};
use crate::rules::label_selector::bad_label_selector;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Validates the affinity of a Pod.
pub fn check_affinity(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let Some(affinity) = object(spec, "affinity") else { return };
    let path = path.field("affinity");
    if let Some(nodes) = object(affinity, "nodeAffinity") {
        let path = path.field("nodeAffinity");
        if let Some(selector) = nodes.get(REQUIRED) {
            errors.extend(bad_node_selector(&path.field(REQUIRED), selector));
        }
        for (index, term) in objects(nodes, PREFERRED) {
            let path = path.item(PREFERRED, index);
            check_weight(errors, term, &path);
            if let Some(preference) = term.get("preference") {
                let path = path.field("preference");
                let wrong = bad_node_term(&path, preference);
                // Preferred terms may have values that are invalid as label values.
                if !wrong.is_empty() {
                    let start = path.to_string().len();
                    errors.extend(
                        wrong.into_iter().filter(|error| !is_value_of_expression(&error.path[start..])),
                    );
                }
            }
        }
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = object(affinity, field) else { continue };
        let path = path.field(field);
        for (index, term) in objects(pods, REQUIRED) {
            check_pod_term(errors, term, &path.item(REQUIRED, index));
        }
        for (index, term) in objects(pods, PREFERRED) {
            let path = path.item(PREFERRED, index);
            check_weight(errors, term, &path);
            if let Some(term) = object(term, "podAffinityTerm") {
                check_pod_term(errors, term, &path.field("podAffinityTerm"));
            }
        }
    }
}

/// Whether a path leads from a term to a value of an expression.
fn is_value_of_expression(path: &str) -> bool {
    path.starts_with(".matchExpressions") && path.contains(".values[")
}

fn check_weight(errors: &mut Errors, term: &Object, path: &Path<'_>) {
    let weight = number(term, &["weight"]);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(path.field("weight"), weight, "must be in the range 1-100"));
    }
}

fn check_pod_term(errors: &mut Errors, term: &Object, path: &Path<'_>) {
    for field in ["labelSelector", "namespaceSelector"] {
        errors.extend(bad_label_selector(&path.field(field), term.get(field)));
    }
    for name in texts(term, "namespaces") {
        invalid(errors, &path.field("namespace"), name, dns1123_label(name));
    }
    check_label_keys(errors, term, path);
    let key = text(term, &["topologyKey"]);
    if key.is_empty() {
        errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
    }
    invalid(errors, &path.field("topologyKey"), key, qualified_name(key));
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`.
fn check_label_keys(errors: &mut Errors, of: &Object, path: &Path<'_>) {
    let selector = object(of, "labelSelector");
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        if items(of, &[field]).is_empty() {
            continue;
        }
        if selector.is_none() {
            let rule = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(path.field(field), rule));
            continue;
        }
        for (index, key) in texts(of, field).enumerate() {
            invalid(errors, &path.item(field, index), key, qualified_name(key));
        }
    }
    if let Some(selector) = selector {
        // Preparation has added an expression for each of these keys; a second one is the client's.
        let mut seen: Vec<&str> = entries(selector, &["matchLabels"]).map(|(key, _)| key.as_str()).collect();
        for (_, expression) in objects(selector, "matchExpressions") {
            let key = text(expression, &["key"]);
            if let Some(index) = texts(of, "matchLabelKeys").position(|other| other == key)
                && seen.contains(&key)
            {
                let rule = "exists in both matchLabelKeys and labelSelector";
                errors.push(FieldError::invalid(path.at(index), key, rule));
            }
            seen.push(key);
        }
    }
    for (index, key) in texts(of, "matchLabelKeys").enumerate() {
        if texts(of, "mismatchLabelKeys").any(|other| other == key) {
            let rule = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(path.item("matchLabelKeys", index), key, rule));
        }
    }
}

/// Validates tolerations.
pub fn check_tolerations(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    for (index, toleration) in objects(spec, "tolerations") {
        let path = path.at(index);
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| text(toleration, &[field]));
        let operator_path = path.field("operator");
        if key.is_empty() {
            if operator != "Exists" {
                let rule = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                errors.push(FieldError::invalid(operator_path, operator, rule));
            }
        } else {
            invalid(errors, &path.field("key"), key, qualified_name(key));
        }
        if toleration.contains_key("tolerationSeconds") && effect != "NoExecute" {
            let rule = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(path.field("effect"), effect, rule));
        }
        match operator {
            "" | "Equal" => {
                let problems = label_value(value);
                if !problems.is_empty() {
                    errors.push(FieldError::invalid(operator_path, value, problems.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let rule = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(operator_path, value, rule));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let supported = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(FieldError::not_supported(operator_path, operator, &supported));
            }
            _ => errors.push(FieldError::not_supported(operator_path, operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            one_of(errors, &path.field("effect"), effect, &EFFECTS);
        }
    }
}

/// Validates topology spread constraints.
pub fn check_spread(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let pair = |constraint: &Object| {
        [text(constraint, &["topologyKey"]), text(constraint, &["whenUnsatisfiable"])].map(ToOwned::to_owned)
    };
    for (index, constraint) in objects(spec, "topologySpreadConstraints") {
        let path = path.at(index);
        let positive = |field: &str, number: i64| {
            FieldError::invalid(path.field(field), number, "must be greater than zero")
        };
        let skew = number(constraint, &["maxSkew"]);
        if skew <= 0 {
            errors.push(positive("maxSkew", skew));
        }
        let [key, action] = pair(constraint);
        if key.is_empty() {
            errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
        }
        one_of(errors, &path.field("whenUnsatisfiable"), &action, &["DoNotSchedule", "ScheduleAnyway"]);
        let mut later = objects(spec, "topologySpreadConstraints").skip(index + 1);
        if later.any(|(_, other)| pair(other) == pair(constraint)) {
            let path = path.field("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(path, format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = set_number(constraint, "minDomains") {
            if domains <= 0 {
                errors.push(positive("minDomains", domains));
            }
            if action != "DoNotSchedule" {
                let rule =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(path.field("minDomains"), domains, rule));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = set_text(constraint, field) {
                one_of(errors, &path.field(field), policy, &["Honor", "Ignore"]);
            }
        }
        check_label_keys(errors, constraint, &path);
        errors.extend(bad_label_selector(&path.field("labelSelector"), constraint.get("labelSelector")));
    }
}

/// Adds the expressions of `matchLabelKeys` and `mismatchLabelKeys`, with the values of the Pod's own labels.
pub fn merge_label_keys(pod: &mut Object) {
    let has_terms = |spec: &Object| {
        ["topologySpreadConstraints", "affinity"].iter().any(|field| spec.contains_key(*field))
    };
    if !object(pod, "spec").is_some_and(has_terms) {
        return;
    }
    let labels = pod.get("metadata").and_then(|metadata| metadata.get("labels")).cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(constraints) = spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut) {
        for constraint in constraints.iter_mut().filter_map(Value::as_object_mut) {
            merge_into(constraint, &labels, &[("matchLabelKeys", "In")]);
        }
    }
    let Some(affinity) = spec.get_mut("affinity") else { return };
    for field in ["podAffinity", "podAntiAffinity"] {
        for list in [REQUIRED, PREFERRED] {
            let terms = affinity.get_mut(field).and_then(|pods| pods.get_mut(list));
            for term in terms.and_then(Value::as_array_mut).into_iter().flatten() {
                let term = if list == REQUIRED { Some(term) } else { term.get_mut("podAffinityTerm") };
                if let Some(term) = term.and_then(Value::as_object_mut) {
                    merge_into(term, &labels, &[("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]);
                }
            }
        }
    }
}

fn merge_into(term: &mut Object, labels: &Value, fields: &[(&str, &str)]) {
    let mut expressions = Vec::new();
    for (field, operator) in fields {
        for key in texts(term, field) {
            if let Some(value) = labels.get(key) {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if expressions.is_empty() {
        return;
    }
    if let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) {
        let list = selector.entry("matchExpressions").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.extend(expressions);
        }
    }
}
