//! PodTemplate.

use model::Object;
use model::error::{FieldError, Path};
use model::object::map_mut;
use serde_json::Value;

use super::pod::{container_cells, default_template, template_warnings, validate_template};
use crate::rules::KindRules;
use crate::rules::columns::{Column, NAME, labels, name};

pub(super) const RULES: KindRules = KindRules {
    kind: "PodTemplate",
    default: |object| default_template(map_mut(object, "template")),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    warnings: |new, old| match template(new) {
        Some(template) if old.and_then(self::template) != Some(template) => {
            template_warnings(template, &Path::root("template"))
        }
        _ => Vec::new(),
    },
    counts_generations: true,
    columns: &[
        NAME,
        Column::new("Containers", "string", "The names of its containers."),
        Column::new("Images", "string", "The images of its containers."),
        Column::new("Pod Labels", "string", "The labels of its pods."),
    ],
    cells: |object, _| {
        let [names, images] = container_cells(template(object));
        vec![name(object), names, images, labels(object, &["template", "metadata", "labels"])]
    },
    ..KindRules::PLAIN
};

fn template(object: &Object) -> Option<&Object> {
    object.get("template").and_then(Value::as_object)
}

fn validate(object: &Object) -> Vec<FieldError> {
    template(object).map(|template| validate_template(template, &Path::root("template"))).unwrap_or_default()
}
