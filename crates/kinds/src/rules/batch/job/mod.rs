//! Job. Its selector is generated, and its template immutable.

mod policies;
mod spec;
mod status;

use model::Object;
use model::object::{is_true, items, map_mut, number, set_default, text, value};
use serde_json::{Value, json};

use crate::rules::age::{human_duration, since};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::selection::Selection;
use crate::rules::workload::{
    CONTAINERS, IMAGES, SELECTOR, container_cells, default_template, map_at, name_warning, optional, present,
    reset_status, template_warnings,
};
use crate::rules::{Dependents, KindRules, SelectableField, Subresource};
use crate::schema::{Precision, Timestamp};

pub(super) use spec::bad_spec;

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const LEGACY_CONTROLLER_UID: &str = "controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";

const INDEXED: &str = "Indexed";
const NON_INDEXED: &str = "NonIndexed";

/// Kubernetes' warning for a deletion of a Job without a propagation policy.
const PODS_STAY: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub(super) const RULES: KindRules = KindRules {
    group: "batch",
    kind: "Job",
    dependents: Dependents::Orphaned(PODS_STAY),
    default,
    prepare_create: |object| {
        if !is_true(object, &["spec", "manualSelector"]) {
            generate_selector(object);
        }
        reset_status(object, json!({}));
    },
    seen: Some(inherit_labels),
    canonicalize: inherit_labels,
    validate_create: |object| spec::validate(object, None),
    validate_update: |new, old| {
        let mut errors = spec::validate(new, Some(old));
        errors.extend(spec::validate_update(new, old));
        errors
    },
    warnings: |new, old| {
        let mut warnings = Vec::new();
        if old.is_none() {
            warnings.extend(name_warning(new));
        }
        warnings.extend(spec_warnings(new, old, &["spec"]));
        warnings
    },
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: status::validate,
    }],
    selectable: &[SelectableField {
        path: "status.successful",
        value: |object| number(object, &["status", "succeeded"]).to_string().into(),
    }],
    columns: &[
        NAME,
        Column::new("Status", "string", "The status of the job."),
        Column::new("Completions", "string", "Succeeded and required pods."),
        Column::new("Duration", "string", "The run time of the job."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells,
    ..KindRules::WITH_STATUS
};

fn default(object: &mut Object) {
    let spec = map_mut(object, "spec");
    default_template(spec);
    default_patterns(spec);
    if !spec.contains_key("parallelism") {
        spec.entry("completions").or_insert_with(|| 1.into());
        spec.insert("parallelism".to_owned(), 1.into());
    }
    let limit = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    spec.entry("backoffLimit").or_insert_with(|| limit.into());
    set_default(spec, "completionMode", NON_INDEXED);
    for field in ["suspend", "manualSelector"] {
        spec.entry(field).or_insert_with(|| false.into());
    }
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_default(spec, "podReplacementPolicy", replacement);
}

/// Defaults of the Pod conditions in the failure policy.
pub(super) fn default_patterns(spec: &mut Object) {
    let rules = spec.get_mut("podFailurePolicy").and_then(|policy| policy.get_mut("rules"));
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        let patterns = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        for pattern in patterns.into_iter().flatten().filter_map(Value::as_object_mut) {
            if text(pattern, &["status"]).is_empty() {
                pattern.insert("status".to_owned(), "True".into());
            }
        }
    }
}

/// Labels the Pods of the template with the Job's name and uid, and selects the uid.
fn generate_selector(object: &mut Object) {
    let name = text(object, &["metadata", "name"]).to_owned();
    let uid = text(object, &["metadata", "uid"]).to_owned();
    let spec = map_mut(object, "spec");
    let labels = map_mut(map_mut(map_mut(spec, "template"), "metadata"), "labels");
    for (key, value) in
        [(LEGACY_JOB_NAME, &name), (JOB_NAME, &name), (LEGACY_CONTROLLER_UID, &uid), (CONTROLLER_UID, &uid)]
    {
        set_default(labels, key, value);
    }
    set_default(map_mut(map_mut(spec, "selector"), "matchLabels"), CONTROLLER_UID, &uid);
}

/// A Job without labels gets those of its template.
fn inherit_labels(object: &mut Object) {
    let labels = value(object, &["spec", "template", "metadata", "labels"]).cloned();
    let metadata = map_mut(object, "metadata");
    if let Some(labels) = labels
        && metadata.get("labels").and_then(Value::as_object).is_none_or(Object::is_empty)
    {
        metadata.insert("labels".to_owned(), labels);
    }
}

/// Warnings about the spec of a Job at this path.
pub(super) fn spec_warnings(new: &Object, old: Option<&Object>, path: &[&str]) -> Vec<String> {
    const MANY_COMPLETIONS: i64 = 100_000;
    const MUCH_PARALLELISM: i64 = 10_000;
    let generation = |object| number(object, &["metadata", "generation"]);
    let Some(spec) = map_at(new, path) else { return Vec::new() };
    if old.is_some_and(|old| generation(old) == generation(new)) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if text(spec, &["completionMode"]) == INDEXED
        && number(spec, &["completions"]) > MANY_COMPLETIONS
        && number(spec, &["parallelism"]) > MUCH_PARALLELISM
    {
        warnings.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            path.join(".")
        ));
    }
    warnings.extend(template_warnings(new, old, path));
    warnings
}

/// Whether a condition of this type is true.
fn is_condition(object: &Object, condition: &str) -> bool {
    items(object, &["status", "conditions"]).iter().any(|item| {
        item.get("type").and_then(Value::as_str) == Some(condition)
            && item.get("status").and_then(Value::as_str) == Some("True")
    })
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let [containers, images] = container_cells(map_at(object, &["spec"]));
    vec![
        name(object),
        phase(object).into(),
        completions(object).into(),
        duration(object, now).into(),
        age(object, now),
        containers,
        images,
        Selection::shown(present(object, &["spec", "selector"])).into(),
    ]
}

fn phase(object: &Object) -> &'static str {
    let is = |condition: &&str| is_condition(object, condition);
    let deleted = value(object, &["metadata", "deletionTimestamp"]).is_some();
    let ended = ["Complete", "Failed"].into_iter().find(is);
    let ending = ended.or(deleted.then_some("Terminating"));
    let ending = ending.or_else(|| ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(is));
    ending.unwrap_or("Running")
}

fn completions(object: &Object) -> String {
    let succeeded = number(object, &["status", "succeeded"]);
    match (optional(object, &["spec", "completions"]), number(object, &["spec", "parallelism"])) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(object: &Object, now: jiff::Timestamp) -> String {
    let time = |field: &str| Timestamp::parse(text(object, &["status", field]), Precision::Seconds).ok();
    match (time("startTime"), time("completionTime")) {
        (None, _) => String::new(),
        (Some(start), Some(end)) => human_duration(end.seconds - start.seconds),
        (Some(_), None) => since(text(object, &["status", "startTime"]), now).unwrap_or_default(),
    }
}
