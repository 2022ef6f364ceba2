//! Pod failure policy and success policy of a Job.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path, quote};
use model::names::qualified_name;
use model::object::text_in;
use model::object::{items, number, text, value};
use serde_json::Value;

use super::INDEXED;
use crate::rules::batch::indexes;
use crate::rules::go::{Go, OPTIONAL, TEXT};
use crate::rules::label_selector::invalid;
use crate::rules::workload::{invalid_shown, map_at, negative, optional, present};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const PATTERNS_MAX: usize = 20;
const INDEXES_LENGTH_MAX: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

const EXIT_CODES: Go = Go::Pointer(&[("containerName", OPTIONAL), ("operator", TEXT), ("values", OPTIONAL)]);
const PATTERN: Go = Go::Struct(&[("type", TEXT), ("status", TEXT)]);
const FAILURE_RULE: Go =
    Go::Struct(&[("action", TEXT), ("onExitCodes", EXIT_CODES), ("onPodConditions", Go::List(&PATTERN))]);
const SUCCESS_RULE: Go = Go::Struct(&[("succeededIndexes", OPTIONAL), ("succeededCount", OPTIONAL)]);

/// A failure policy, for messages.
pub(super) const FAILURE_POLICY: Go = Go::Pointer(&[("rules", Go::List(&FAILURE_RULE))]);
/// A success policy, for messages.
pub(super) const SUCCESS_POLICY: Go = Go::Pointer(&[("rules", Go::List(&SUCCESS_RULE))]);

/// Validates the failure policy of a spec at this path.
pub(super) fn bad_failure_policy(spec: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let Some(policy) = map_at(spec, &["podFailurePolicy"]) else { return Vec::new() };
    let path = path.field("podFailurePolicy.rules");
    let rules = items(policy, &["rules"]);
    let mut errors = Vec::new();
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(path, rules.len(), RULES_MAX));
    }
    for (index, rule) in rules.iter().enumerate().filter_map(|(index, rule)| Some((index, rule.as_object()?)))
    {
        errors.extend(bad_rule(spec, rule, &path.at(index)));
    }
    errors
}

fn bad_rule(spec: &Object, rule: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let action = text(rule, &["action"]);
    if action == "FailIndex" && present(spec, &["backoffLimitPerIndex"]).is_none() {
        let detail = "requires the backoffLimitPerIndex to be set";
        errors.push(FieldError::invalid(path.field("action"), action, detail));
    }
    errors.extend(bad_choice(&path.field("action"), action, &ACTIONS));
    let (codes, patterns) = (map_at(rule, &["onExitCodes"]), items(rule, &["onPodConditions"]));
    if let Some(codes) = codes {
        errors.extend(bad_exit_codes(spec, codes, &path.field("onExitCodes")));
    }
    errors.extend(bad_patterns(patterns, &path.field("onPodConditions")));
    let detail = match (codes.is_some(), !patterns.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return errors,
    };
    errors.push(FieldError { value: None, ..FieldError::invalid(path, "", detail) });
    errors
}

/// The error for a value that is not in a list.
fn bad_choice(path: &Path<'_>, chosen: &str, choices: &[&str]) -> Option<FieldError> {
    if chosen.is_empty() {
        let choices: Vec<String> = choices.iter().map(|choice| quote(choice)).collect();
        return Some(FieldError::required(path, format!("valid values: [{}]", choices.join(" "))));
    }
    (!choices.contains(&chosen)).then(|| FieldError::not_supported(path, chosen, choices))
}

fn bad_patterns(patterns: &[Value], path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if patterns.len() > PATTERNS_MAX {
        errors.push(FieldError::too_many(path, patterns.len(), PATTERNS_MAX));
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let field = |field: &str| text_in(pattern, field);
        let condition = field("type");
        errors.extend(invalid(&path.at(index).field("type"), condition, qualified_name(condition)));
        errors.extend(bad_choice(&path.at(index).field("status"), field("status"), &STATUSES));
    }
    errors
}

fn bad_exit_codes(spec: &Object, codes: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let operator = text(codes, &["operator"]);
    errors.extend(bad_choice(&path.field("operator"), operator, &OPERATORS));
    if let Some(container) = value(codes, &["containerName"]).and_then(Value::as_str)
        && !has_container(spec, container)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(path.field("containerName"), container, detail));
    }
    let path = path.field("values");
    let values: Vec<i64> = items(codes, &["values"]).iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        errors.push(invalid_shown(&path, "[]", "at least one value is required"));
    } else if values.len() > EXIT_CODES_MAX {
        errors.push(FieldError::too_many(path, values.len(), EXIT_CODES_MAX));
    }
    let mut seen = BTreeSet::new();
    for (index, code) in values.iter().enumerate() {
        if operator == "In" && *code == 0 {
            let detail = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(path.at(index), *code, detail));
        }
        if !seen.insert(code) {
            errors.push(FieldError::duplicate(path.at(index), *code));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(path, values, "must be ordered"));
    }
    errors
}

fn has_container(spec: &Object, name: &str) -> bool {
    ["containers", "initContainers"].iter().any(|list| {
        let containers = items(spec, &["template", "spec", list]);
        containers.iter().any(|container| container.get("name").and_then(Value::as_str) == Some(name))
    })
}

/// Validates the success policy of a spec at this path.
pub(super) fn bad_success_policy(spec: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let Some(policy) = map_at(spec, &["successPolicy"]) else { return Vec::new() };
    let path = path.field("successPolicy");
    if text(spec, &["completionMode"]) != INDEXED {
        let shown = SUCCESS_POLICY.write(spec.get("successPolicy"));
        return vec![invalid_shown(&path, &shown, "requires indexed completion mode")];
    }
    let path = path.field("rules");
    let rules = items(policy, &["rules"]);
    let mut errors = Vec::new();
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(path, detail));
    }
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(path, rules.len(), RULES_MAX));
    }
    let completions = number(spec, &["completions"]);
    for (index, rule) in rules.iter().enumerate().filter_map(|(index, rule)| Some((index, rule.as_object()?)))
    {
        errors.extend(bad_success_rule(rule, completions, &path.at(index)));
    }
    errors
}

fn bad_success_rule(rule: &Object, completions: i64, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = value(rule, &["succeededIndexes"]).and_then(Value::as_str);
    let count = optional(rule, &["succeededCount"]);
    if list.is_none() && count.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut total = 0;
    if let Some(list) = list {
        let path = path.field("succeededIndexes");
        if list.len() > INDEXES_LENGTH_MAX {
            errors.push(FieldError::too_long(path, INDEXES_LENGTH_MAX));
        }
        match indexes::count(list, completions) {
            Ok(counted) => total = counted,
            Err(problem) => {
                let detail = format!("error parsing succeededIndexes: {problem}");
                errors.push(FieldError::invalid(path, list, detail));
            }
        }
    }
    errors.extend(negative(rule, path, &["succeededCount"]));
    let limits = [
        (true, completions, "the number of specified completions"),
        (list.is_some(), total, "the number of indexes in the specified succeededIndexes field"),
    ];
    for (applies, limit, what) in limits {
        if let Some(count) = count.filter(|count| applies && *count > limit) {
            let detail = format!("must be less than or equal to {limit} ({what})");
            errors.push(FieldError::invalid(path.field("succeededCount"), count, detail));
        }
    }
    errors
}
