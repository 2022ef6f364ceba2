//! HorizontalPodAutoscaler of `v2`.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{items, map_mut, number, text};
use serde_json::{Value, json};

use super::metrics::{bad_metrics, bad_reference, is_bad_version, shown_metrics};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::workload::{map_at, negative, optional, present, reset_status};
use crate::rules::{KindRules, Subresource};
use quantity::Quantity;

const WINDOW_MAX: i64 = 3600;
const PERIOD_MAX: i64 = 1800;
const SELECT_POLICIES: [&str; 3] = ["Disabled", "Max", "Min"];
const POLICIES: [&str; 2] = ["Percent", "Pods"];

pub(super) const RULES: KindRules = KindRules {
    group: "autoscaling",
    kind: "HorizontalPodAutoscaler",
    default: |object| {
        let spec = map_mut(object, "spec");
        spec.entry("minReplicas").or_insert_with(|| 1.into());
        if items(spec, &["metrics"]).is_empty() {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
            spec.insert("metrics".to_owned(), json!([metric]));
        }
        if map_at(spec, &["behavior"]).is_some() {
            default_behavior(map_mut(spec, "behavior"));
        }
    },
    prepare_create: |object| reset_status(object, json!({"currentMetrics": null, "desiredReplicas": 0})),
    validate_create: |object| validate(object, None),
    validate_update: |new, old| validate(new, Some(old)),
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |new, _| {
            let counts = ["currentReplicas", "desiredReplicas"];
            map_at(new, &["status"])
                .map(|status| negative(status, &Path::STATUS, &counts))
                .unwrap_or_default()
        },
    }],
    counts_generations: false,
    columns: &[
        NAME,
        Column::new("Reference", "string", "The object that it scales."),
        Column::new("Targets", "string", "Current and target values of its metrics."),
        Column::new("MinPods", "string", "The minimum number of replicas."),
        Column::new("MaxPods", "string", "The maximum number of replicas."),
        Column::new("Replicas", "string", "The current number of replicas."),
        AGE,
    ],
    cells: |object, now| {
        let target = |field: &str| text(object, &["spec", "scaleTargetRef", field]);
        let least = optional(object, &["spec", "minReplicas"]).map(|number| number.to_string());
        vec![
            name(object),
            format!("{}/{}", target("kind"), target("name")).into(),
            shown_metrics(object).into(),
            least.unwrap_or_else(|| "<unset>".to_owned()).into(),
            number(object, &["spec", "maxReplicas"]).into(),
            number(object, &["status", "currentReplicas"]).into(),
            age(object, now),
        ]
    },
    ..KindRules::WITH_STATUS
};

/// Defaults of the behavior: a partial one is completed.
fn default_behavior(behavior: &mut Object) {
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let up = map_mut(behavior, "scaleUp");
    up.entry("stabilizationWindowSeconds").or_insert_with(|| 0.into());
    up.entry("selectPolicy").or_insert_with(|| "Max".into());
    up.entry("policies").or_insert_with(|| json!([pods, percent]));
    let down = map_mut(behavior, "scaleDown");
    down.entry("selectPolicy").or_insert_with(|| "Max".into());
    down.entry("policies").or_insert_with(|| json!([percent]));
}

fn validate(object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let old_spec = old.and_then(|old| map_at(old, &["spec"]));
    let mut errors = bad_limits(spec, old_spec);
    if let Some(target) = map_at(spec, &["scaleTargetRef"]) {
        let (version, kind) = (text(target, &["apiVersion"]), text(target, &["kind"]));
        let is_old = old_spec.is_some_and(|old| {
            let of = |field: &str| text(old, &["scaleTargetRef", field]);
            of("apiVersion") == version && of("kind") == kind
        });
        errors.extend(bad_reference(
            &Path::root("spec.scaleTargetRef"),
            target,
            is_old,
            kind == "ReplicationController",
        ));
    }
    // Metrics that older versions of Kubernetes accepted stay valid in updates.
    let had_bad_metrics = old_spec.is_some_and(|old| {
        let described = items(old, &["metrics"]).iter().filter_map(|metric| metric.get("object"));
        described.filter_map(|source| source.get("describedObject")?.as_object()).any(is_bad_version)
    });
    errors.extend(bad_metrics(items(spec, &["metrics"]), &Path::root("spec.metrics"), had_bad_metrics));
    errors.extend(bad_scaling_to_zero(spec));
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = map_at(spec, &["behavior", direction]) {
            errors.extend(bad_rules(rules, &Path::SPEC.field("behavior").field(direction)));
        }
    }
    errors
}

fn bad_limits(spec: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (least, most) = (optional(spec, &["minReplicas"]), number(spec, &["maxReplicas"]));
    let bound = i64::from(old.and_then(|old| optional(old, &["minReplicas"])) != Some(0));
    if let Some(least) = least.filter(|least| *least < bound) {
        let detail = format!("must be greater than or equal to {bound}");
        errors.push(FieldError::invalid("spec.minReplicas", least, detail));
    }
    if most < 1 {
        errors.push(FieldError::invalid("spec.maxReplicas", most, "must be greater than 0"));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", most, detail));
    }
    errors
}

fn bad_scaling_to_zero(spec: &Object) -> Option<FieldError> {
    let is_of_pods =
        |metric: &Value| !matches!(metric.get("type").and_then(Value::as_str), Some("Object" | "External"));
    let is_wrong =
        optional(spec, &["minReplicas"]) == Some(0) && items(spec, &["metrics"]).iter().all(is_of_pods);
    is_wrong.then(|| {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        FieldError::forbidden("spec.metrics", detail)
    })
}

fn bad_rules(rules: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(window) = optional(rules, &["stabilizationWindowSeconds"]) {
        let path = path.field("stabilizationWindowSeconds");
        if window < 0 {
            errors.push(FieldError::invalid(path, window, "must be greater than or equal to zero"));
        } else if window > WINDOW_MAX {
            let detail = format!("must be less than or equal to {WINDOW_MAX}");
            errors.push(FieldError::invalid(path, window, detail));
        }
    }
    if let Some(policy) = present(rules, &["selectPolicy"]).and_then(Value::as_str)
        && !SELECT_POLICIES.contains(&policy)
    {
        errors.push(FieldError::not_supported(path.field("selectPolicy"), policy, &SELECT_POLICIES));
    }
    let policies = items(rules, &["policies"]);
    if policies.is_empty() {
        errors.push(FieldError::required(path.field("policies"), "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        errors.extend(
            policy
                .as_object()
                .map(|policy| bad_policy(policy, &path.item("policies", index)))
                .unwrap_or_default(),
        );
    }
    if let Some(tolerance) = present(rules, &["tolerance"]).and_then(Value::as_str)
        && Quantity::parse(tolerance).is_ok_and(|tolerance| tolerance.is_negative())
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path.field("tolerance"), tolerance, detail));
    }
    errors
}

fn bad_policy(policy: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(policy, &["type"]);
    if !POLICIES.contains(&kind) {
        errors.push(FieldError::not_supported(path.field("type"), kind, &POLICIES));
    }
    for field in ["value", "periodSeconds"] {
        let number = number(policy, &[field]);
        if number <= 0 {
            errors.push(FieldError::invalid(path.field(field), number, "must be greater than zero"));
        }
    }
    let period = number(policy, &["periodSeconds"]);
    if period > PERIOD_MAX {
        let detail = format!("must be less than or equal to {PERIOD_MAX}");
        errors.push(FieldError::invalid(path.field("periodSeconds"), period, detail));
    }
    errors
}
