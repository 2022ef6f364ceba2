//! PodDisruptionBudget.

use model::Object;
use model::error::{FieldError, Path};
use model::names::NameRule;
use model::object::{items, number};
use serde_json::Value;

use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::conditions::bad_conditions;
use crate::rules::go::{Go, OPTIONAL};
use crate::rules::label_selector::bad_label_selector;
use crate::rules::workload::{
    bad_int_or_percent, invalid_shown, map_at, more_than_all, negative, present, reset_status,
};
use crate::rules::{KindRules, Subresource};

const COUNTS: [&str; 4] = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
const EVICTION_POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];
const SPEC: Go = Go::Struct(&[
    ("minAvailable", OPTIONAL),
    ("selector", Go::Selector),
    ("maxUnavailable", OPTIONAL),
    ("unhealthyPodEvictionPolicy", OPTIONAL),
]);

pub(super) const RULES: KindRules = KindRules {
    group: "policy",
    kind: "PodDisruptionBudget",
    name: NameRule::PathSegment,
    prepare_create: |object| {
        reset_status(object, COUNTS.into_iter().map(|field| (field, Value::from(0))).collect());
    },
    validate_create: validate,
    validate_update: |new, _| validate(new),
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |new, _| {
            let mut errors =
                bad_conditions(&Path::root("status.conditions"), items(new, &["status", "conditions"]));
            errors.extend(
                map_at(new, &["status"])
                    .map(|status| negative(status, &Path::STATUS, &COUNTS))
                    .unwrap_or_default(),
            );
            errors
        },
    }],
    unconditional_update: false,
    columns: &[
        NAME,
        Column::new("Min Available", "string", "The minimum number of available pods."),
        Column::new("Max Unavailable", "string", "The maximum number of unavailable pods."),
        Column::new("Allowed Disruptions", "integer", "The number of pods that may be evicted now."),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            limit(object, "minAvailable"),
            limit(object, "maxUnavailable"),
            number(object, &["status", "disruptionsAllowed"]).into(),
            age(object, now),
        ]
    },
    ..KindRules::WITH_STATUS
};

fn limit(object: &Object, field: &str) -> Value {
    match present(object, &["spec", field]) {
        Some(Value::String(text)) => text.as_str().into(),
        Some(number) => number.to_string().into(),
        None => "N/A".into(),
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let limits = ["minAvailable", "maxUnavailable"].map(|field| (field, present(spec, &[field])));
    let mut errors = Vec::new();
    if limits.iter().all(|(_, limit)| limit.is_some()) {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(invalid_shown(&Path::SPEC, &SPEC.write(object.get("spec")), detail));
    }
    for (field, limit) in limits {
        let path = Path::SPEC.field(field);
        errors.extend(limit.and_then(|limit| bad_int_or_percent(&path, limit)));
        errors.extend(limit.and_then(|limit| more_than_all(&path, limit)));
    }
    errors.extend(bad_label_selector(&Path::root("spec.selector"), present(spec, &["selector"])));
    if let Some(policy) = present(spec, &["unhealthyPodEvictionPolicy"]).and_then(Value::as_str)
        && !EVICTION_POLICIES.contains(&policy)
    {
        let path = &Path::root("spec.unhealthyPodEvictionPolicy");
        errors.push(FieldError::not_supported(path, policy, &EVICTION_POLICIES));
    }
    errors
}
