//! Volume mounts and devices of containers.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{is_true, text};
use serde_json::Value;

use super::fields::{Errors, descending, objects, one_of, set_text};
use super::volumes::Volumes;

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const READ_ONLY: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

/// Validates the mounts and devices of a container.
pub fn check(errors: &mut Errors, container: &Object, path: &Path<'_>, volumes: &Volumes<'_>) {
    check_mounts(errors, container, &path.field("volumeMounts"), volumes);
    check_devices(errors, container, &path.field("volumeDevices"), volumes);
}

fn has(container: &Object, list: &str, field: &str, value: &str) -> bool {
    objects(container, list).any(|(_, item)| text(item, &[field]) == value)
}

fn check_mounts(errors: &mut Errors, container: &Object, list: &Path<'_>, volumes: &Volumes<'_>) {
    let mut points = BTreeSet::new();
    for (index, mount) in objects(container, "volumeMounts") {
        let path = list.at(index);
        let (name, point) = (text(mount, &["name"]), text(mount, &["mountPath"]));
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        }
        if !volumes.has(name) {
            errors.push(FieldError::not_found(path.field("name"), name));
        }
        if point.is_empty() {
            errors.push(FieldError::required(path.field("mountPath"), ""));
        }
        let mut wrong = |field: &str, value: &str, rule: &str| {
            errors.push(FieldError::invalid(path.field(field), value, rule));
        };
        if !points.insert(point) {
            wrong("mountPath", point, "must be unique");
        }
        if has(container, "volumeDevices", "name", name) {
            wrong("name", name, "must not already exist in volumeDevices");
        }
        if has(container, "volumeDevices", "devicePath", point) {
            wrong("mountPath", point, "must not already exist as a path in volumeDevices");
        }
        check_mount_options(errors, container, mount, &path, list);
    }
}

fn check_mount_options(
    errors: &mut Errors,
    container: &Object,
    mount: &Object,
    path: &Path<'_>,
    list: &Path<'_>,
) {
    let (part, expression) = (text(mount, &["subPath"]), text(mount, &["subPathExpr"]));
    descending(errors, &list.field("subPath"), part);
    if !expression.is_empty() {
        if !part.is_empty() {
            let rule = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(path.field("subPathExpr"), expression, rule));
        }
        descending(errors, &list.field("subPathExpr"), expression);
    }
    let propagation = set_text(mount, "mountPropagation");
    if let Some(propagation) = propagation {
        let path = list.field("mountPropagation");
        one_of(errors, &path, propagation, &PROPAGATIONS);
        if propagation == "Bidirectional" && !is_true(container, &["securityContext", "privileged"]) {
            let rule = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(path, rule));
        }
    }
    let path = list.field("recursiveReadOnly");
    match set_text(mount, "recursiveReadOnly") {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !is_true(mount, &["readOnly"]) {
                errors.push(FieldError::forbidden(path, "may only be specified when readOnly is true"));
            }
            if propagation.is_some_and(|propagation| propagation != "None") {
                let rule = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, rule));
            }
        }
        Some(other) => errors.push(FieldError::not_supported(path, other, &READ_ONLY)),
    }
}

fn check_devices(errors: &mut Errors, container: &Object, list: &Path<'_>, volumes: &Volumes<'_>) {
    let (mut names, mut targets) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in objects(container, "volumeDevices") {
        let path = list.at(index);
        let (name, target) = (text(device, &["name"]), text(device, &["devicePath"]));
        let wrong =
            |field: &str, value: &str, rule: &str| FieldError::invalid(path.field(field), value, rule);
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        }
        if names.contains(name) {
            errors.push(wrong("name", name, "must be unique"));
        }
        match volumes.is_claim(name) {
            Some(true) => {}
            Some(false) => {
                let rule =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(wrong("name", name, rule));
            }
            None => errors.push(FieldError::not_found(path.field("name"), Value::from(name))),
        }
        if target.is_empty() {
            errors.push(FieldError::required(path.field("devicePath"), ""));
        }
        if targets.contains(target) {
            errors.push(wrong("devicePath", target, "must be unique"));
        }
        if target.split('/').any(|part| part == "..") {
            errors.push(wrong("devicePath", target, "can not contain backsteps ('..')"));
        } else {
            targets.insert(target);
        }
        if has(container, "volumeMounts", "name", name) {
            errors.push(wrong("name", name, "must not already exist in volumeMounts"));
        }
        if has(container, "volumeMounts", "mountPath", target) {
            errors.push(wrong("devicePath", target, "must not already exist as a path in volumeMounts"));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
