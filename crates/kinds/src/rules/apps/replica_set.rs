//! ReplicaSet. Its selector is immutable.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{map_mut, number};
use serde_json::json;

use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::selection::Selection;
use crate::rules::workload::{
    CONTAINERS, IMAGES, SELECTOR, bad_replicas, changed_selector, container_cells, default_template,
    exceeding, map_at, negative, present, reset_status, warnings_of_pods,
};
use crate::rules::{KindRules, Subresource};

pub(super) const RULES: KindRules = KindRules {
    group: "apps",
    kind: "ReplicaSet",
    default: |object| {
        let spec = map_mut(object, "spec");
        default_template(spec);
        spec.entry("replicas").or_insert_with(|| 1.into());
    },
    prepare_create: |object| reset_status(object, json!({"replicas": 0})),
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        errors.extend(changed_selector(new, old));
        errors
    },
    warnings: warnings_of_pods,
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |new, _| validate_status(new),
    }],
    columns: &[
        NAME,
        Column::new("Desired", "integer", "The number of desired pods."),
        Column::new("Current", "integer", "The number of pods."),
        Column::new("Ready", "integer", "The number of ready pods."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        let [containers, images] = container_cells(map_at(object, &["spec"]));
        vec![
            name(object),
            number(object, &["spec", "replicas"]).into(),
            number(object, &["status", "replicas"]).into(),
            number(object, &["status", "readyReplicas"]).into(),
            age(object, now),
            containers,
            images,
            Selection::shown(present(object, &["spec", "selector"])).into(),
        ]
    },
    ..KindRules::WITH_STATUS
};

fn validate(object: &Object) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let mut errors = negative(spec, &Path::SPEC, &["replicas", "minReadySeconds"]);
    errors.extend(bad_replicas(spec));
    errors
}

fn validate_status(object: &Object) -> Vec<FieldError> {
    let Some(status) = map_at(object, &["status"]) else { return Vec::new() };
    let mut errors = negative(
        status,
        &Path::STATUS,
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
    );
    let fields = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    errors.extend(exceeding(status, &fields, "replicas", "cannot be greater than status.replicas"));
    let fields = ["availableReplicas"];
    errors.extend(exceeding(status, &fields, "readyReplicas", "cannot be greater than readyReplicas"));
    errors
}
