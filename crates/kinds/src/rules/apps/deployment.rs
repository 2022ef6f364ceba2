//! Deployment. Its selector is immutable.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{map_mut, number, set_default, text};
use serde_json::{Value, json};

use super::STRATEGY;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::selection::Selection;
use crate::rules::workload::{
    CONTAINERS, IMAGES, SELECTOR, bad_int_or_percent, bad_replicas, changed_selector, container_cells,
    default_template, exceeding, fewer_collisions, int_or_percent, invalid_shown,
    keep_all_but_status_and_labels, map_at, more_than_all, negative, not_supported_shown, optional, present,
    reset_status, warnings_of_pods,
};
use crate::rules::{KindRules, Subresource};

const STRATEGIES: [&str; 2] = ["Recreate", "RollingUpdate"];

pub(super) const RULES: KindRules = KindRules {
    group: "apps",
    kind: "Deployment",
    default: |object| {
        let spec = map_mut(object, "spec");
        default_template(spec);
        spec.entry("replicas").or_insert_with(|| 1.into());
        spec.entry("revisionHistoryLimit").or_insert_with(|| 10.into());
        spec.entry("progressDeadlineSeconds").or_insert_with(|| 600.into());
        let strategy = map_mut(spec, "strategy");
        set_default(strategy, "type", "RollingUpdate");
        if text(strategy, &["type"]) == "RollingUpdate" {
            let rolling = map_mut(strategy, "rollingUpdate");
            set_default(rolling, "maxUnavailable", "25%");
            set_default(rolling, "maxSurge", "25%");
        }
    },
    prepare_create: |object| reset_status(object, json!({})),
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        errors.extend(changed_selector(new, old));
        errors
    },
    warnings: warnings_of_pods,
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status_and_labels,
        validate_update: validate_status,
    }],
    counts_annotations: true,
    columns: &[
        NAME,
        Column::new("Ready", "string", "Ready and desired pods."),
        Column::new("Up-to-date", "string", "The number of pods with the current template."),
        Column::new("Available", "string", "The number of available pods."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        let [containers, images] = container_cells(map_at(object, &["spec"]));
        let selection = Selection::read(present(object, &["spec", "selector"]));
        vec![
            name(object),
            ready(object),
            number(object, &["status", "updatedReplicas"]).into(),
            number(object, &["status", "availableReplicas"]).into(),
            age(object, now),
            containers,
            images,
            selection.map_or_else(|| "<invalid>".to_owned(), |selection| selection.to_string()).into(),
        ]
    },
    ..KindRules::WITH_STATUS
};

/// The cell `ready/desired`.
pub(super) fn ready(object: &Object) -> Value {
    let of = |path: &[&str]| number(object, path);
    format!("{}/{}", of(&["status", "readyReplicas"]), of(&["spec", "replicas"])).into()
}

fn validate(object: &Object) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let mut errors = negative(spec, &Path::SPEC, &["replicas"]);
    errors.extend(bad_replicas(spec));
    errors.extend(bad_strategy(spec));
    errors.extend(negative(
        spec,
        &Path::SPEC,
        &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
    ));
    if let Some(deadline) = optional(spec, &["progressDeadlineSeconds"])
        && deadline <= number(spec, &["minReadySeconds"])
    {
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
    errors
}

fn bad_strategy(spec: &Object) -> Vec<FieldError> {
    const ROLLING: &str = "spec.strategy.rollingUpdate";
    let Some(strategy) = map_at(spec, &["strategy"]) else { return Vec::new() };
    let rolling = map_at(strategy, &["rollingUpdate"]);
    match (text(strategy, &["type"]), rolling) {
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            vec![FieldError::forbidden(ROLLING, detail)]
        }
        ("Recreate", None) => Vec::new(),
        ("RollingUpdate", rolling) => rolling.map(bad_rolling_update).unwrap_or_default(),
        _ => {
            let shown = STRATEGY.write(spec.get("strategy"));
            vec![not_supported_shown(&Path::root("spec.strategy"), &shown, &STRATEGIES)]
        }
    }
}

fn bad_rolling_update(rolling: &Object) -> Vec<FieldError> {
    const UNAVAILABLE: &str = "spec.strategy.rollingUpdate.maxUnavailable";
    const SURGE: &str = "spec.strategy.rollingUpdate.maxSurge";
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    let mut errors = Vec::new();
    errors.extend(unavailable.and_then(|value| bad_int_or_percent(&Path::root(UNAVAILABLE), value)));
    errors.extend(surge.and_then(|value| bad_int_or_percent(&Path::root(SURGE), value)));
    if int_or_percent(unavailable) == 0 && int_or_percent(surge) == 0 {
        let shown = unavailable.map_or_else(|| "0".to_owned(), Value::to_string);
        errors.push(invalid_shown(&Path::root(UNAVAILABLE), &shown, "may not be 0 when `maxSurge` is 0"));
    }
    errors.extend(unavailable.and_then(|value| more_than_all(&Path::root(UNAVAILABLE), value)));
    errors
}

fn validate_status(new: &Object, old: &Object) -> Vec<FieldError> {
    let Some(status) = map_at(new, &["status"]) else { return Vec::new() };
    let mut errors = negative(
        status,
        &Path::STATUS,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
    );
    let fields = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    errors.extend(exceeding(status, &fields, "replicas", "cannot be greater than status.replicas"));
    let fields = ["availableReplicas"];
    errors.extend(exceeding(status, &fields, "readyReplicas", "cannot be greater than readyReplicas"));
    errors.extend(fewer_collisions(new, old));
    errors
}
