//! ResourceQuota. Its scopes are immutable.

use std::collections::BTreeSet;
use std::fmt::Write;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{entries, items, maps, text, texts, value};
use serde_json::Value;

use super::resource_name::{bad_quota_resource_name, bad_resource_amount, is_standard_for_quota};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::{KindRules, Subresource};
use quantity::Quantity;

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
/// Scopes without values.
const PLAIN_SCOPES: [&str; 5] =
    ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
const COMPUTE: [&str; 6] =
    ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

pub(super) const RULES: KindRules = KindRules {
    kind: "ResourceQuota",
    validate_create: bad_spec,
    validate_update: |new, old| {
        let mut errors = bad_spec(new);
        let scopes = |object| texts(object, &["spec", "scopes"]).into_iter().collect::<BTreeSet<&str>>();
        if scopes(new) != scopes(old) {
            errors.push(FieldError::invalid("spec.scopes", shown_scopes(new), "field is immutable"));
        }
        errors
    },
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |new, _| {
            let mut errors = bad_amounts(new, ["status", "hard"]);
            errors.extend(bad_amounts(new, ["status", "used"]));
            errors
        },
    }],
    warnings: |new, old| if old.is_some() { Vec::new() } else { warnings(new) },
    counts_generations: false,
    columns: &[
        NAME,
        Column::new("Request", "string", "Used and allowed requests and counts."),
        Column::new("Limit", "string", "Used and allowed limits."),
        AGE,
    ],
    cells: |object, now| {
        let (requests, limits) = shown_amounts(object);
        vec![name(object), requests.into(), limits.into(), age(object, now)]
    },
    ..KindRules::WITH_STATUS
};

fn bad_spec(object: &Object) -> Vec<FieldError> {
    let mut errors = bad_amounts(object, ["spec", "hard"]);
    errors.extend(bad_scopes(object));
    if value(object, &["spec", "scopeSelector"]).is_some_and(Value::is_object) {
        errors.extend(bad_selector(object));
    }
    errors
}

fn bad_amounts(object: &Object, place: [&str; 2]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = Path::root(place[0]);
    let path = path.field(place[1]);
    for (resource, amount) in entries(object, &place) {
        let path = path.key(resource);
        errors.extend(bad_quota_resource_name(&path, resource));
        errors.extend(bad_resource_amount(&path, resource, amount));
    }
    errors
}

/// Whether a scope applies to a resource.
fn applies(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ if SCOPES.contains(&scope) => resource == "pods" || COMPUTE.contains(&resource),
        _ => true,
    }
}

/// The number of limited resources that a scope does not apply to.
fn misapplied(object: &Object, scope: &str) -> usize {
    entries(object, &["spec", "hard"])
        .filter(|(resource, _)| is_standard_for_quota(resource) && !applies(scope, resource))
        .count()
}

fn shown_scopes(object: &Object) -> Value {
    value(object, &["spec", "scopes"]).cloned().unwrap_or_default()
}

fn bad_scopes(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut refuse =
        |detail: &str| errors.push(FieldError::invalid("spec.scopes", shown_scopes(object), detail));
    let scopes = texts(object, &["spec", "scopes"]);
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            refuse("unsupported scope");
        }
        (0..misapplied(object, scope)).for_each(|_| refuse("unsupported scope applied to resource"));
    }
    for pair in CONFLICTS {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            refuse("conflicting scopes");
        }
    }
    errors
}

fn bad_selector(object: &Object) -> Vec<FieldError> {
    let place = ["spec", "scopeSelector", "matchExpressions"];
    let path = Path::SPEC.field("scopeSelector.matchExpressions");
    let mut errors = Vec::new();
    let mut scopes = BTreeSet::new();
    for (_, requirement) in maps(object, &place) {
        let scope = text(requirement, &["scopeName"]);
        scopes.insert(scope);
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(path.field("scopeName"), scope, "unsupported scope"));
        }
        for _ in 0..misapplied(object, scope) {
            let detail = "unsupported scope applied to resource";
            errors.push(FieldError::invalid_shown(path, &shown_selector(object), detail));
        }
        errors.extend(bad_requirement(&path, requirement));
    }
    for pair in CONFLICTS {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.push(FieldError::invalid(path, shown_scopes(object), "conflicting scopes"));
        }
    }
    errors
}

/// The selector as Go formats it: with the names and the order of Kubernetes' internal fields.
fn shown_selector(object: &Object) -> String {
    let requirement = |(_, requirement): (usize, &Object)| {
        let shown = |field| value(requirement, &[field]).unwrap_or(&Value::Null).to_string();
        let (scope, operator, values) = (shown("scopeName"), shown("operator"), shown("values"));
        format!("{{\"ScopeName\":{scope},\"Operator\":{operator},\"Values\":{values}}}")
    };
    let all: Vec<String> =
        maps(object, &["spec", "scopeSelector", "matchExpressions"]).map(requirement).collect();
    format!("{{\"MatchExpressions\":[{}]}}", all.join(","))
}

fn bad_requirement(path: &Path<'_>, requirement: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (operator, values) = (text(requirement, &["operator"]), items(requirement, &["values"]));
    if PLAIN_SCOPES.contains(&text(requirement, &["scopeName"])) && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                      ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                      ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.push(FieldError::invalid(path.field("operator"), operator, detail));
    }
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.push(FieldError::required(path.field("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.push(FieldError::invalid(path.field("values"), values.to_vec(), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(path.field("operator"), operator, detail));
        }
    }
    errors
}

/// Warns about requests that exceed their limits.
fn warnings(object: &Object) -> Vec<String> {
    let amount = |name: &str| {
        let text = value(object, &["spec", "hard", name])?.as_str()?;
        Some((text, Quantity::parse(text).ok()?))
    };
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut request_name = format!("requests.{resource}");
        let mut request = amount(&request_name);
        if request.is_none() && matches!(resource, "cpu" | "memory") {
            resource.clone_into(&mut request_name);
            request = amount(resource);
        }
        let limit_name = format!("limits.{resource}");
        if let (Some((request_text, request)), Some((limit_text, limit))) = (request, amount(&limit_name))
            && request > limit
        {
            warnings.push(format!(
                "ResourceQuota {request_name} ({request_text}) should be less than {limit_name} ({limit_text})"
            ));
        }
    }
    warnings
}

/// Used and hard quantities of requests and of limits.
fn shown_amounts(object: &Object) -> (String, String) {
    let mut resources: Vec<(&String, &Value)> = entries(object, &["status", "hard"]).collect();
    resources.sort_unstable_by_key(|(resource, _)| *resource);
    let (mut requests, mut limits) = (String::new(), String::new());
    for (resource, hard) in resources {
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        let used = match text(object, &["status", "used", resource]) {
            "" => "0",
            used => used,
        };
        let separator = if column.is_empty() { "" } else { ", " };
        write!(column, "{separator}{resource}: {used}/{}", hard.as_str().unwrap_or_default())
            .expect("writing to a String cannot fail");
    }
    (requests, limits)
}
