//! CSINode.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_subdomain, qualified_name};
use model::object::{items, items_in, text_in};
use serde_json::Value;

use super::GROUP;
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::invalid_for;

const NODE_ID_MAX: usize = 256;
const DRIVER_MAX: usize = 63;

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "CSINode",
    validate_create: validate,
    validate_update: |new, old| {
        // Kubernetes validates twice and reports every error twice.
        let mut errors = [validate(new), validate(new)].concat();
        for (was, is) in drivers(old).iter().flat_map(|was| drivers(new).iter().map(move |is| (was, is))) {
            let differs = ["nodeID", "topologyKeys"].iter().any(|field| was.get(*field) != is.get(*field));
            if text_in(was, "name") == text_in(is, "name") && differs {
                let error = FieldError::invalid("spec.drivers", "", "field is immutable");
                errors.push(error.showing(&shown(is)));
            }
        }
        errors
    },
    unconditional_update: false,
    columns: &[NAME, Column::new("Drivers", "integer", "The number of drivers of the node."), AGE],
    cells: |object, now| vec![name(object), drivers(object).len().into(), age(object, now)],
    ..KindRules::PLAIN
};

fn drivers(object: &Object) -> &[Value] {
    items(object, &["spec", "drivers"])
}

fn shown(driver: &Value) -> String {
    let keys = driver.get("topologyKeys").unwrap_or(&Value::Null);
    let (name, id) = (text_in(driver, "name"), text_in(driver, "nodeID"));
    format!("{{\"Name\":\"{name}\",\"NodeID\":\"{id}\",\"TopologyKeys\":{keys},\"Allocatable\":null}}")
}

/// Validates the name of a driver.
pub(in crate::rules) fn bad_driver_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    if name.len() > DRIVER_MAX {
        errors.push(FieldError::too_long(path, DRIVER_MAX));
    }
    errors.extend(invalid_for(path, name, dns1123_subdomain(&name.to_lowercase())));
    errors
}

fn validate(object: &Object) -> Vec<FieldError> {
    let (mut names, mut errors) = (BTreeSet::new(), Vec::new());
    for (index, driver) in drivers(object).iter().enumerate() {
        let path = Path::SPEC.item("drivers", index);
        let name = text_in(driver, "name");
        errors.extend(bad_driver_name(&path.field("name"), name));
        let id = text_in(driver, "nodeID");
        let id_path = path.field("nodeID");
        if id.is_empty() {
            errors.push(FieldError::required(id_path, ""));
        } else if id.len() > NODE_ID_MAX {
            let problem = format!("must be {NODE_ID_MAX} characters or less");
            errors.push(FieldError::invalid(id_path, id, problem));
        }
        let count = driver.get("allocatable").and_then(|room| room.get("count")).and_then(Value::as_i64);
        if let Some(count) = count.filter(|count| *count < 0) {
            let problem = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(path.field("allocatable.count"), count, problem));
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        errors.extend(bad_keys(&path, items_in(driver, "topologyKeys")));
    }
    errors
}

fn bad_keys(path: &Path<'_>, keys: &[Value]) -> Vec<FieldError> {
    let (mut known, mut errors) = (BTreeSet::new(), Vec::new());
    for key in keys.iter().map(|key| key.as_str().unwrap_or_default()) {
        if key.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        if !known.insert(key) {
            errors.push(FieldError::duplicate(path, key));
        }
        errors.extend(invalid_for(path, key, qualified_name(key)));
    }
    errors
}
