//! ControllerRevision. Its data is immutable.

use model::Object;
use model::error::FieldError;
use model::object::text_in;
use model::object::{items, number};
use serde_json::Value;

use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::immutable;

pub(super) const RULES: KindRules = KindRules {
    group: "apps",
    kind: "ControllerRevision",
    validate_create: |object| {
        let mut errors: Vec<FieldError> = bad_revision(object).into_iter().collect();
        match object.get("data") {
            Some(Value::Object(_)) => {}
            None | Some(Value::Null) => errors.push(FieldError::required("data", "data is mandatory")),
            Some(_) => errors.push(FieldError::required("data", "data must be a valid JSON object")),
        }
        errors
    },
    validate_update: |new, old| {
        let mut errors: Vec<FieldError> = bad_revision(new).into_iter().collect();
        errors.extend(immutable(new, old, "data"));
        errors
    },
    columns: &[
        NAME,
        Column::new("Controller", "string", "The controller that owns it."),
        Column::new("Revision", "string", "The number of the revision."),
        AGE,
    ],
    cells: |object, now| {
        let revision = number(object, &["revision"]).into();
        vec![name(object), controller(object).into(), revision, age(object, now)]
    },
    ..KindRules::PLAIN
};

fn bad_revision(object: &Object) -> Option<FieldError> {
    let revision = number(object, &["revision"]);
    (revision < 0).then(|| FieldError::invalid("revision", revision, "must be greater than or equal to 0"))
}

/// The controller owner as in `statefulset.apps/db`.
fn controller(object: &Object) -> String {
    let owners = items(object, &["metadata", "ownerReferences"]).iter();
    let Some(owner) = owners.into_iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
    else {
        return "<none>".to_owned();
    };
    let text = |field: &str| text_in(owner, field);
    let group = match text("apiVersion").split_once('/') {
        Some((group, _)) => format!(".{group}"),
        None => String::new(),
    };
    format!("{}{group}/{}", text("kind").to_lowercase(), text("name"))
}
