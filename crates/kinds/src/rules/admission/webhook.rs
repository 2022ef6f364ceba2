//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_subdomain;
use model::object::{has, items, maps, maps_mut, number, set_default, text, texts, value};
use serde_json::{Map, Value};

use super::GROUP;
use super::client_config::bad_client_config;
use super::matching::{
    FAILURE_POLICIES, bad_conditions, bad_match_policy, bad_selectors, default_matching, unsupported,
};
use super::review_versions::{REVIEW_VERSIONS, bad_version_names};
use super::rule::{bad_rule, default_rule};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};

const SERVICE_PORT: i64 = 443;
const TIMEOUT_SECONDS: i64 = 10;
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

pub(super) const VALIDATING: KindRules = KindRules {
    group: GROUP,
    kind: "ValidatingWebhookConfiguration",
    default: |object| maps_mut(object, "webhooks").for_each(default_webhook),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    counts_generations: true,
    unconditional_update: false,
    columns: &[NAME, Column::new("Webhooks", "integer", "The number of its webhooks."), AGE],
    cells: |object, now| vec![name(object), items(object, &["webhooks"]).len().into(), age(object, now)],
    ..KindRules::PLAIN
};

pub(super) const MUTATING: KindRules = KindRules {
    kind: "MutatingWebhookConfiguration",
    default: |object| {
        for webhook in maps_mut(object, "webhooks") {
            default_webhook(webhook);
            set_default(webhook, "reinvocationPolicy", "Never");
        }
    },
    ..VALIDATING
};

fn default_webhook(webhook: &mut Object) {
    set_default(webhook, "failurePolicy", FAILURE_POLICIES[0]);
    default_matching(webhook);
    webhook.entry("timeoutSeconds").or_insert_with(|| TIMEOUT_SECONDS.into());
    maps_mut(webhook, "rules").for_each(default_rule);
    let service = webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
    if let Some(Value::Object(service)) = service {
        service.entry("port").or_insert_with(|| SERVICE_PORT.into());
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, webhook) in maps(object, &["webhooks"]) {
        let path = Path::OBJECT.item("webhooks", index);
        errors.extend(bad_webhook(&path, webhook));
        errors.extend(bad_versions(&path.field("admissionReviewVersions"), webhook));
        let name = text(webhook, &["name"]);
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
    }
    errors
}

fn bad_webhook(path: &Path<'_>, webhook: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> =
        bad_qualified_domain(&path.field("name"), text(webhook, &["name"])).into_iter().collect();
    for (index, rule) in maps(webhook, &["rules"]) {
        errors.extend(bad_rule(&path.item("rules", index), rule));
    }
    errors.extend(unsupported(path, webhook, "failurePolicy", &FAILURE_POLICIES));
    errors.extend(bad_match_policy(path, webhook));
    if !has(webhook, &["sideEffects"]) {
        let detail = format!("must specify one of {}", SIDE_EFFECTS.join(", "));
        errors.push(FieldError::required(path.field("sideEffects"), detail));
    }
    errors.extend(unsupported(path, webhook, "sideEffects", &SIDE_EFFECTS));
    let timeout = number(webhook, &["timeoutSeconds"]);
    if !(1..=30).contains(&timeout) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(path.field("timeoutSeconds"), timeout, detail));
    }
    errors.extend(bad_selectors(path, webhook));
    errors.extend(unsupported(path, webhook, "reinvocationPolicy", &REINVOCATION_POLICIES));
    let nowhere = Map::new();
    let config = value(webhook, &["clientConfig"]).and_then(Value::as_object).unwrap_or(&nowhere);
    errors.extend(bad_client_config(&path.field("clientConfig"), config));
    errors.extend(bad_conditions(path, webhook, false));
    errors
}

fn bad_qualified_domain(path: &Path<'_>, name: &str) -> Option<FieldError> {
    if name.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    let wrong = dns1123_subdomain(name);
    if !wrong.is_empty() {
        return Some(FieldError::invalid(path, name, wrong.join(",")));
    }
    let is_short = name.split('.').count() < 3;
    is_short.then(|| {
        let detail = "should be a domain with at least three segments separated by dots";
        FieldError::invalid(path, name, detail)
    })
}

/// Validates `admissionReviewVersions`: the server must support one of them.
fn bad_versions(path: &Path<'_>, webhook: &Object) -> Vec<FieldError> {
    let versions = texts(webhook, &["admissionReviewVersions"]);
    let known = REVIEW_VERSIONS.join(", ");
    if versions.is_empty() {
        return vec![FieldError::required(path, format!("must specify one of {known}"))];
    }
    let mut errors = bad_version_names(path, &versions);
    if !versions.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        errors.push(FieldError::invalid(path, versions, format!("must include at least one of {known}")));
    }
    errors
}
