//! Scale of `autoscaling/v1`: the replicas of any scalable object.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{map_mut, number, text, value};
use serde_json::{Value, json};

use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, age, name};
use crate::rules::selection::Selection;
use crate::rules::workload::{map_at, negative};

pub(super) const RULES: KindRules = KindRules {
    group: "autoscaling",
    kind: "Scale",
    columns: &[
        Column::new("Name", "string", "The name of the scaled object."),
        Column::new("Desired", "integer", "The number of desired replicas."),
        Column::new("Available", "integer", "The number of observed replicas."),
        AGE,
    ],
    cells: |scale, now| {
        vec![
            name(scale),
            number(scale, &["spec", "replicas"]).into(),
            number(scale, &["status", "replicas"]).into(),
            age(scale, now),
        ]
    },
    ..KindRules::PLAIN
};

/// The Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController.
pub fn scale_of(object: &Object) -> Object {
    let mut metadata = Object::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let value = value(object, &["metadata", field]).cloned();
        metadata.extend(value.map(|value| (field.to_owned(), value)));
    }
    let mut spec = Object::new();
    let replicas = number(object, &["spec", "replicas"]);
    if replicas != 0 {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let mut status = Object::new();
    status.insert("replicas".to_owned(), number(object, &["status", "replicas"]).into());
    let selector = selector(object);
    if !selector.is_empty() {
        status.insert("selector".to_owned(), selector.into());
    }
    let scale = json!({"metadata": metadata, "spec": spec, "status": status});
    scale.as_object().cloned().unwrap_or_default()
}

/// Writes a Scale to its object: the replicas and the resource version.
pub fn set_scale(object: &mut Object, scale: &Object) {
    map_mut(object, "spec").insert("replicas".to_owned(), number(scale, &["spec", "replicas"]).into());
    let metadata = map_mut(object, "metadata");
    match text(scale, &["metadata", "resourceVersion"]) {
        "" => metadata.remove("resourceVersion"),
        version => metadata.insert("resourceVersion".to_owned(), version.into()),
    };
}

/// Validates a Scale except its metadata.
pub fn validate_scale(scale: &Object) -> Vec<FieldError> {
    map_at(scale, &["spec"]).map(|spec| negative(spec, &Path::SPEC, &["replicas"])).unwrap_or_default()
}

/// Its label selector. ReplicationControllers have a plain map of labels.
fn selector(object: &Object) -> String {
    let selector = value(object, &["spec", "selector"]);
    let plain = selector
        .and_then(Value::as_object)
        .filter(|labels| !labels.is_empty() && labels.values().all(Value::is_string));
    match plain {
        Some(labels) => Selection::of_labels(labels).to_string(),
        None => Selection::read(selector).map(|selection| selection.to_string()).unwrap_or_default(),
    }
}
