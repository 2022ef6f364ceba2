//! DeviceClass.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{items, map_mut, value};
use serde_json::Value;

use super::GROUP;
use super::checks::{bad_configuration, bad_list, bad_selectors};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, NAME, age, name};

pub(super) const CONFIGURATIONS_MAX: usize = 32;

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "DeviceClass",
    prepare_create: drop_disabled,
    prepare_update: |new, _| drop_disabled(new),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    counts_generations: true,
    columns: &[NAME, AGE],
    cells: |object, now| vec![name(object), age(object, now)],
    ..KindRules::PLAIN
};

fn drop_disabled(object: &mut Object) {
    map_mut(object, "spec").remove("extendedResourceName");
}

fn validate(object: &Object) -> Vec<FieldError> {
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return Vec::new() };
    let mut errors = bad_selectors(&Path::root("spec.selectors"), spec);
    let configurations = items(spec, &["config"]);
    errors.extend(bad_list(
        &Path::root("spec.config"),
        configurations,
        CONFIGURATIONS_MAX,
        None,
        bad_configuration,
    ));
    errors
}
