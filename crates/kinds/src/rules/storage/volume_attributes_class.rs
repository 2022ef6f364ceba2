//! VolumeAttributesClass.

use model::Object;
use model::error::FieldError;
use model::object::{entries, text};

use super::GROUP;
use super::storage_class::{bad_driver, bad_parameters};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "VolumeAttributesClass",
    validate_create: validate,
    validate_update: |new, old| {
        let changed =
            ["driverName", "parameters"].into_iter().filter(|field| new.get(*field) != old.get(*field));
        let forbidden = |field| FieldError::forbidden(field, format!("updates to {field} are forbidden."));
        let mut errors: Vec<FieldError> = changed.map(forbidden).collect();
        errors.extend(validate(new));
        errors
    },
    columns: &[NAME, Column::new("DriverName", "string", "The driver of the volumes."), AGE],
    cells: |object, now| vec![name(object), text(object, &["driverName"]).into(), age(object, now)],
    ..KindRules::PLAIN
};

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = bad_driver(object, "driverName");
    errors.extend(bad_parameters(object));
    if entries(object, &["parameters"]).next().is_none() {
        errors.push(FieldError::required("parameters", "must contain at least one key/value pair"));
    }
    errors
}
