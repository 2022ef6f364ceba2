//! ConfigMap.

use model::Object;
use model::error::FieldError;
use model::object::{entries, value};

use super::data::{SIZE_MAX, bad_keys, bytes_size, key_errors, sealed, text_size};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};

pub(super) const RULES: KindRules = KindRules {
    kind: "ConfigMap",
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = sealed(new, old, &["data", "binaryData"]);
        errors.extend(validate(new));
        errors
    },
    columns: &[NAME, Column::new("Data", "string", "The number of entries."), AGE],
    cells: |object, now| {
        let count = entries(object, &["data"]).count() + entries(object, &["binaryData"]).count();
        vec![name(object), count.into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, _) in entries(object, &["data"]) {
        errors.extend(key_errors("data", key));
        if value(object, &["binaryData", key]).is_some() {
            let problem = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(format!("data[{key}]"), key.as_str(), problem));
        }
    }
    errors.extend(bad_keys(object, "binaryData"));
    if text_size(object, "data") + bytes_size(object, "binaryData") > SIZE_MAX {
        // Kubernetes' path of an object that is too large as a whole.
        errors.push(FieldError::too_long("[]", SIZE_MAX));
    }
    errors
}
