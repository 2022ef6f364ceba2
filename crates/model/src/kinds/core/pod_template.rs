//! PodTemplate: a template of pods that stands alone.

use serde_json::Value;

use super::pod::{default_template, template_warnings, validate_template};
use crate::error::FieldError;
use crate::kinds::object::map_mut;
use crate::kinds::{KindRules, Object};

pub(super) const RULES: KindRules = KindRules {
    kind: "PodTemplate",
    default: |object| default_template(map_mut(object, "template")),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    warnings: |new, _| {
        template(new).map(|template| template_warnings(template, "template")).unwrap_or_default()
    },
    counts_generations: true,
    ..KindRules::PLAIN
};

fn template(object: &Object) -> Option<&Object> {
    object.get("template").and_then(Value::as_object)
}

fn validate(object: &Object) -> Vec<FieldError> {
    template(object).map(|template| validate_template(template, "template")).unwrap_or_default()
}
