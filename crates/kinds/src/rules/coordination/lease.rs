//! Lease. Fields of coordinated leader election, whose feature gate is off, are dropped.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{map_mut, text, value};

use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};

pub(super) const RULES: KindRules = KindRules {
    group: "coordination.k8s.io",
    kind: "Lease",
    prepare_create: |object| drop_coordination(object, None),
    prepare_update: |new, old| drop_coordination(new, Some(old)),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    create_on_update: true,
    unconditional_update: false,
    columns: &[NAME, Column::new("Holder", "string", "The identity of the holder."), AGE],
    cells: |object, now| {
        vec![name(object), text(object, &["spec", "holderIdentity"]).into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

/// Keeps values that are already stored: another server may have written them.
fn drop_coordination(new: &mut Object, old: Option<&Object>) {
    for field in ["strategy", "preferredHolder"] {
        if old.and_then(|old| value(old, &["spec", field])).is_none() {
            map_mut(new, "spec").remove(field);
        }
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let rules = [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ];
    let mut errors = Vec::new();
    for (field, least, problem) in rules {
        if let Some(number) = value(object, &["spec", field]).and_then(serde_json::Value::as_i64)
            && number < least
        {
            errors.push(FieldError::invalid(Path::SPEC.field(field), number, problem));
        }
    }
    errors
}
