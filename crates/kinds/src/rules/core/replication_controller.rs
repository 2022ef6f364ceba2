//! ReplicationController.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{copy, entries, map_mut, number, text, value};
use serde_json::Value;

use super::pod::{container_cells, default_template, name_warning, template_warnings, validate_template};
use crate::rules::columns::{AGE, Column, NAME, age, labels, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::{Dependents, KindRules, SelectableField, Subresource};

pub(super) const RULES: KindRules = KindRules {
    kind: "ReplicationController",
    dependents: Dependents::Orphaned(""),
    default,
    prepare_create: |object| {
        object.insert("status".to_owned(), serde_json::json!({"replicas": 0}));
    },
    prepare_update: |new, old| copy(new, old, "status"),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    warnings,
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |new, _| bad_status(new),
    }],
    counts_generations: true,
    selectable: &[SelectableField {
        path: "status.replicas",
        value: |object| number(object, &["status", "replicas"]).to_string().into(),
    }],
    columns: &[
        NAME,
        Column::new("Desired", "integer", "The number of desired pods."),
        Column::new("Current", "integer", "The number of pods."),
        Column::new("Ready", "integer", "The number of ready pods."),
        AGE,
        Column::new("Containers", "string", "The names of the containers of its pods.").wide(),
        Column::new("Images", "string", "The images of the containers of its pods.").wide(),
        Column::new("Selector", "string", "The selector of its pods.").wide(),
    ],
    cells: |object, now| {
        let [names, images] = container_cells(template(object));
        let count = |path: [&str; 2]| Value::from(number(object, &path));
        vec![
            name(object),
            count(["spec", "replicas"]),
            count(["status", "replicas"]),
            count(["status", "readyReplicas"]),
            age(object, now),
            names,
            images,
            labels(object, &["spec", "selector"]),
        ]
    },
    ..KindRules::PLAIN
};

fn template(object: &Object) -> Option<&Object> {
    value(object, &["spec", "template"]).and_then(Value::as_object)
}

fn default(object: &mut Object) {
    let labels = template(object)
        .and_then(|template| template.get("metadata")?.get("labels"))
        .filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        .cloned();
    let spec = map_mut(object, "spec");
    spec.entry("replicas").or_insert_with(|| 1.into());
    if let Some(Value::Object(template)) = spec.get_mut("template") {
        default_template(template);
    }
    if let Some(labels) = labels {
        spec.entry("selector").or_insert_with(|| labels.clone());
        map_mut(object, "metadata").entry("labels").or_insert(labels);
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let not_negative = |errors: &mut Vec<FieldError>, field: &str| {
        let number = number(object, &["spec", field]);
        if number < 0 {
            let rule = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(Path::SPEC.field(field), number, rule));
        }
    };
    not_negative(&mut errors, "minReadySeconds");
    if entries(object, &["spec", "selector"]).next().is_none() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    not_negative(&mut errors, "replicas");
    let Some(template) = template(object) else {
        errors.push(FieldError::required("spec.template", ""));
        return errors;
    };
    let labels =
        template.get("metadata").and_then(|metadata| metadata.get("labels")).cloned().unwrap_or_default();
    if entries(object, &["spec", "selector"]).any(|(key, value)| labels.get(key) != Some(value)) {
        let rule = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, rule));
    }
    errors.extend(validate_template(template, &Path::root("spec.template")));
    let policy = text(template, &["spec", "restartPolicy"]);
    if policy != "Always" {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if value(template, &["spec", "activeDeadlineSeconds"]).is_some() {
        let rule = "activeDeadlineSeconds in ReplicationController is not Supported";
        errors.push(FieldError::forbidden("spec.template.spec.activeDeadlineSeconds", rule));
    }
    errors
}

fn bad_status(object: &Object) -> Vec<FieldError> {
    let fields =
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    let [all, labeled, ready, available, _] = fields.map(|field| number(object, &["status", field]));
    let mut errors = Vec::new();
    for field in fields {
        let number = number(object, &["status", field]);
        if number < 0 {
            let rule = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(Path::STATUS.field(field), number, rule));
        }
    }
    let more = "cannot be greater than status.replicas";
    for (field, count, most, rule) in [
        ("fullyLabeledReplicas", labeled, all, more),
        ("readyReplicas", ready, all, more),
        ("availableReplicas", available, all, more),
        ("availableReplicas", available, ready, "cannot be greater than readyReplicas"),
    ] {
        if count > most {
            errors.push(FieldError::invalid(Path::STATUS.field(field), count, rule));
        }
    }
    errors
}

fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    // On update Kubernetes uses the old template.
    let template = match old {
        None => template(new),
        Some(old) if old.get("spec") != new.get("spec") => template(old),
        Some(_) => None,
    };
    let advice = "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
                  recommended";
    let mut warnings: Vec<String> = name_warning(new, advice).filter(|_| old.is_none()).into_iter().collect();
    warnings.extend(
        template
            .map(|template| template_warnings(template, &Path::root("spec.template")))
            .unwrap_or_default(),
    );
    warnings
}
