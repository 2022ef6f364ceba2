//! StorageClass. Most of its fields are immutable.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;
use model::error::{FieldError, Path};
use model::names::qualified_name;
use model::object::{entries, is_true, items, set_default, text};
use serde_json::Value;

use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age};
use crate::rules::common::immutable;

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_SIZE_MAX: usize = 256 * 1024;
const RECLAIM_POLICIES: [&str; 2] = ["Delete", "Retain"];
const BINDING_MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];
const DEFAULT_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Renamed or deprecated node labels.
const OLD_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

pub(super) const RULES: KindRules = KindRules {
    group: "storage.k8s.io",
    kind: "StorageClass",
    default: |object| {
        set_default(object, "reclaimPolicy", RECLAIM_POLICIES[0]);
        set_default(object, "volumeBindingMode", BINDING_MODES[0]);
    },
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        let fixed = ["parameters", "provisioner", "reclaimPolicy"].into_iter();
        errors.extend(
            fixed
                .filter(|field| new.get(*field) != old.get(*field))
                .map(|field| FieldError::forbidden(field, format!("updates to {field} are forbidden."))),
        );
        errors.extend(immutable(new, old, "volumeBindingMode"));
        errors
    },
    warnings: |object, _| warnings(object),
    columns: &[
        NAME,
        Column::new("Provisioner", "string", "The provisioner of its volumes."),
        Column::new("ReclaimPolicy", "string", "The action after the claim of a volume is deleted."),
        Column::new("VolumeBindingMode", "string", "The time at which a claim is bound."),
        Column::new("AllowVolumeExpansion", "string", "Whether its volumes can be expanded."),
        AGE,
    ],
    cells: |object, now| {
        let mut name = text(object, &["metadata", "name"]).to_owned();
        if DEFAULT_ANNOTATIONS.iter().any(|key| text(object, &["metadata", "annotations", key]) == "true") {
            name.push_str(" (default)");
        }
        vec![
            name.into(),
            text(object, &["provisioner"]).into(),
            text(object, &["reclaimPolicy"]).into(),
            text(object, &["volumeBindingMode"]).into(),
            is_true(object, &["allowVolumeExpansion"]).into(),
            age(object, now),
        ]
    },
    ..KindRules::PLAIN
};

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(bad_driver(object, "provisioner"));
    errors.extend(bad_parameters(object));
    let policy = text(object, &["reclaimPolicy"]);
    if !policy.is_empty() && !RECLAIM_POLICIES.contains(&policy) {
        errors.push(FieldError::not_supported("reclaimPolicy", policy, &RECLAIM_POLICIES));
    }
    let mode = text(object, &["volumeBindingMode"]);
    if !BINDING_MODES.contains(&mode) {
        errors.push(FieldError::not_supported("volumeBindingMode", mode, &BINDING_MODES));
    }
    errors.extend(bad_topologies(object));
    errors
}

fn bad_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    let problems = qualified_name(name).into_iter();
    problems.map(|problem| FieldError::invalid(path, name, problem)).collect()
}

/// Validates the name of a provisioner or driver.
pub(super) fn bad_driver(object: &Object, field: &str) -> Vec<FieldError> {
    match text(object, &[field]) {
        "" => vec![FieldError::required(field, "")],
        driver => bad_name(&Path::root(field), &driver.to_lowercase()),
    }
}

/// Validates the parameters of a class.
pub(super) fn bad_parameters(object: &Object) -> Vec<FieldError> {
    if entries(object, &["parameters"]).count() > PARAMETERS_MAX {
        return vec![FieldError::too_long("parameters", PARAMETERS_MAX)];
    }
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in entries(object, &["parameters"]) {
        if key.is_empty() {
            errors.push(FieldError::invalid("parameters", "", "field can not be empty."));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > PARAMETERS_SIZE_MAX {
        errors.push(FieldError::too_long("parameters", PARAMETERS_SIZE_MAX));
    }
    errors
}

/// The keys of a topology term with their values.
type Term<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn bad_topologies(object: &Object) -> Vec<FieldError> {
    let topologies = items(object, &["allowedTopologies"]);
    let mut errors = Vec::new();
    // Kubernetes starts with as many empty terms as there are terms, so that an empty one counts as a duplicate.
    let mut known: Vec<Term> = vec![Term::new(); topologies.len()];
    for (index, term) in topologies.iter().enumerate() {
        let path = Path::OBJECT.item("allowedTopologies", index);
        let path = path.field("matchLabelExpressions");
        let term = read_term(&path, term, &mut errors);
        let same = known.iter().filter(|other| **other == term);
        errors.extend(same.map(|_| FieldError::duplicate(path, "")));
        known.push(term);
    }
    errors
}

fn read_term<'a>(path: &Path<'_>, term: &'a Value, errors: &mut Vec<FieldError>) -> Term<'a> {
    let mut read = Term::new();
    let expressions = term.get("matchLabelExpressions").and_then(Value::as_array);
    for (index, expression) in expressions.into_iter().flatten().enumerate() {
        let path = path.at(index);
        let values =
            expression.get("values").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if values.is_empty() {
            errors.push(FieldError::required(path.field("values"), ""));
        }
        let mut set = BTreeSet::new();
        for (at, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            if !set.insert(value) {
                errors.push(FieldError::duplicate(path.item("values", at), value));
            }
        }
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        errors.extend(bad_name(&path.field("key"), key));
        if read.insert(key, set).is_some() {
            errors.push(FieldError::duplicate(path.field("key"), key));
        }
    }
    read
}

/// The advice about a renamed or deprecated node label.
pub(in crate::rules) fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(label, _)| *label == key).map(|(_, advice)| *advice)
}

fn warnings(object: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, term) in items(object, &["allowedTopologies"]).iter().enumerate() {
        let expressions = term.get("matchLabelExpressions").and_then(Value::as_array);
        for (j, expression) in expressions.into_iter().flatten().enumerate() {
            let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
            if let Some(advice) = old_label(key) {
                warnings.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {advice}"));
            }
        }
    }
    warnings
}
