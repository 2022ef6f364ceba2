//! CSIStorageCapacity.

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_subdomain;
use model::object::{entries, items, text, text_in};

use super::GROUP;
use super::storage_class::old_label;
use crate::rules::KindRules;
use crate::rules::columns::{Column, NAME, name};
use crate::rules::common::{immutable, invalid_for};
use crate::rules::label_selector::bad_label_selector;
use quantity::Quantity;

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "CSIStorageCapacity",
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        errors.extend(
            ["nodeTopology", "storageClassName"].into_iter().filter_map(|field| immutable(new, old, field)),
        );
        errors
    },
    warnings: |object, _| warnings(object),
    unconditional_update: false,
    columns: &[NAME, Column::new("Created At", "date", "The time of its creation.")],
    cells: |object, _| vec![name(object), text(object, &["metadata", "creationTimestamp"]).into()],
    ..KindRules::PLAIN
};

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = bad_label_selector(&Path::root("nodeTopology"), object.get("nodeTopology"));
    let class = text(object, &["storageClassName"]);
    errors.extend(invalid_for(&Path::root("storageClassName"), class, dns1123_subdomain(class)));
    let capacity = text(object, &["capacity"]);
    if Quantity::parse(capacity).is_ok_and(|capacity| capacity.is_negative()) {
        let problem = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("capacity", capacity, problem));
    }
    errors
}

fn warnings(object: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, expression) in items(object, &["nodeTopology", "matchExpressions"]).iter().enumerate() {
        let key = text_in(expression, "key");
        let path = format!("nodeTopology.matchExpressions[{index}].key");
        warnings.extend(old_label(key).map(|advice| format!("{path}: {key} is {advice}")));
    }
    for (key, _) in entries(object, &["nodeTopology", "matchLabels"]) {
        warnings.extend(old_label(key).map(|advice| format!("nodeTopology.matchLabels.{key}: {advice}")));
    }
    warnings
}
