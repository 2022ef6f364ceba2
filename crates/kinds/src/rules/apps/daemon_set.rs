//! DaemonSet. Its selector is immutable, and an annotation counts the changes of its template.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{copy, map_mut, number, set_default, text, value};
use serde_json::Value;

use super::STRATEGY;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::label_selector::bad_label_selector;
use crate::rules::selection::{Selection, shown_labels};
use crate::rules::workload::{
    CONTAINERS, IMAGES, SELECTOR, bad_int_or_percent, bad_template, changed_selector, container_cells,
    default_template, empty_selector, ending_template, fewer_collisions, int_or_percent, map_at,
    more_than_all, negative, not_supported_shown, present, reset_status, template_warnings, unselected,
};
use crate::rules::{KindRules, Subresource};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const STRATEGIES: [&str; 2] = ["RollingUpdate", "OnDelete"];

pub(super) const RULES: KindRules = KindRules {
    group: "apps",
    kind: "DaemonSet",
    default: |object| {
        let spec = map_mut(object, "spec");
        default_template(spec);
        let strategy = map_mut(spec, "updateStrategy");
        set_default(strategy, "type", STRATEGIES[0]);
        if text(strategy, &["type"]) == STRATEGIES[0] {
            let rolling = map_mut(strategy, "rollingUpdate");
            rolling.entry("maxUnavailable").or_insert_with(|| 1.into());
            rolling.entry("maxSurge").or_insert_with(|| 0.into());
        }
        spec.entry("revisionHistoryLimit").or_insert_with(|| 10.into());
    },
    seen: Some(|object| {
        let annotations = map_mut(map_mut(object, "metadata"), "annotations");
        set_default(annotations, TEMPLATE_GENERATION, "0");
    }),
    prepare_create: |object| {
        let zero = ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"];
        reset_status(object, zero.into_iter().map(|field| (field.to_owned(), Value::from(0))).collect());
        let generation = template_generation(object).max(1);
        set_template_generation(object, generation);
    },
    prepare_update: |new, old| {
        copy(new, old, "status");
        let template = |object| value(object, &["spec", "template"]);
        let step = i64::from(template(new) != template(old));
        set_template_generation(new, template_generation(old) + step);
    },
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors: Vec<FieldError> = changed_selector(new, old).into_iter().collect();
        errors.extend(validate(new));
        errors
    },
    warnings: |new, old| template_warnings(new, old, &["spec"]),
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| {
            keep_all_but_status(new, old);
            set_template_generation(new, template_generation(old));
        },
        validate_update: validate_status,
    }],
    columns: &[
        NAME,
        Column::new("Desired", "integer", "The number of nodes that should run a pod."),
        Column::new("Current", "integer", "The number of these nodes that run a pod."),
        Column::new("Ready", "integer", "The number of ready pods."),
        Column::new("Up-to-date", "integer", "The number of pods with the current template."),
        Column::new("Available", "integer", "The number of available pods."),
        Column::new("Node Selector", "string", "The node selector of its pods."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells,
    ..KindRules::WITH_STATUS
};

fn template_generation(object: &Object) -> i64 {
    text(object, &["metadata", "annotations", TEMPLATE_GENERATION]).parse().unwrap_or(0)
}

fn set_template_generation(object: &mut Object, generation: i64) {
    let annotations = map_mut(map_mut(object, "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
}

fn validate(object: &Object) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let selector = present(spec, &["selector"]);
    let mut errors = bad_label_selector(&Path::root("spec.selector"), selector);
    errors.extend(Selection::read(selector).and_then(|selection| unselected(spec, &selection)));
    errors.extend(empty_selector(spec, "daemonset"));
    errors.extend(bad_template(spec, &Path::root("spec.template")));
    errors.extend(ending_template(spec, "DaemonSet"));
    errors.extend(negative(spec, &Path::SPEC, &["minReadySeconds"]));
    errors.extend(bad_strategy(spec));
    errors.extend(negative(spec, &Path::SPEC, &["revisionHistoryLimit"]));
    errors
}

fn bad_strategy(spec: &Object) -> Vec<FieldError> {
    let Some(strategy) = map_at(spec, &["updateStrategy"]) else { return Vec::new() };
    match (text(strategy, &["type"]), map_at(strategy, &["rollingUpdate"])) {
        ("OnDelete", _) => Vec::new(),
        ("RollingUpdate", Some(rolling)) => bad_rolling_update(rolling),
        ("RollingUpdate", None) => vec![FieldError::required("spec.updateStrategy.rollingUpdate", "")],
        _ => {
            let shown = STRATEGY.write(spec.get("updateStrategy"));
            vec![not_supported_shown(&Path::root("spec.updateStrategy"), &shown, &STRATEGIES)]
        }
    }
}

fn bad_rolling_update(rolling: &Object) -> Vec<FieldError> {
    const UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    const SURGE: &str = "spec.updateStrategy.rollingUpdate.maxSurge";
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    let mut errors = Vec::new();
    errors.extend(unavailable.and_then(|value| bad_int_or_percent(&Path::root(UNAVAILABLE), value)));
    errors.extend(surge.and_then(|value| bad_int_or_percent(&Path::root(SURGE), value)));
    errors.extend(unavailable.and_then(|value| more_than_all(&Path::root(UNAVAILABLE), value)));
    errors.extend(surge.and_then(|value| more_than_all(&Path::root(SURGE), value)));
    match (int_or_percent(unavailable) != 0, int_or_percent(surge) != 0) {
        (true, true) => {
            let surge = surge.cloned().unwrap_or_default();
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(SURGE, surge, detail));
        }
        (false, false) => {
            errors.push(FieldError::required(UNAVAILABLE, "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
    errors
}

fn validate_status(new: &Object, old: &Object) -> Vec<FieldError> {
    let Some(status) = map_at(new, &["status"]) else { return Vec::new() };
    let mut errors = negative(
        status,
        &Path::STATUS,
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    );
    errors.extend(fewer_collisions(new, old));
    errors
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let counts = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    let [containers, images] = container_cells(map_at(object, &["spec"]));
    let mut cells = vec![name(object)];
    cells.extend(counts.map(|field| Value::from(number(object, &["status", field]))));
    cells.push(shown_labels(value(object, &["spec", "template", "spec", "nodeSelector"])).into());
    cells.extend([age(object, now), containers, images]);
    cells.push(Selection::shown(present(object, &["spec", "selector"])).into());
    cells
}
