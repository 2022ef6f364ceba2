//! Validation of a volume spec, in a PersistentVolume or inline in a VolumeAttachment.

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_subdomain;
use model::object::{entries, has, items, text, value};
use serde_json::Value;

use super::sources;
use crate::rules::common::{invalid_for, unsupported};
use crate::rules::core::node_selector::bad_node_selector;
use crate::rules::quantities::{bad_amount, not_positive};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Whether a volume spec is inline, without a PersistentVolume.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// Inline.
    Yes,
    /// A PersistentVolume.
    No,
}

/// Validates access modes.
pub fn bad_modes(path: &Path<'_>, modes: &[Value]) -> Vec<FieldError> {
    let modes = || modes.iter().map(|mode| mode.as_str().unwrap_or_default());
    let mut errors: Vec<FieldError> =
        modes().filter_map(|mode| unsupported(path, mode, &ACCESS_MODES)).collect();
    let of_pods = |mode: &str| mode == "ReadWriteOncePod";
    if modes().any(of_pods) && modes().any(|mode| ACCESS_MODES.contains(&mode) && !of_pods(mode)) {
        errors.push(FieldError::forbidden(path, "may not use ReadWriteOncePod with other access modes"));
    }
    errors
}

/// Validates a volume spec.
pub fn bad_volume_spec(path: &Path<'_>, spec: &Object, inline: Inline) -> Vec<FieldError> {
    const NOT_INLINE: &str = "may not be specified in the context of inline volumes";
    let inline = inline == Inline::Yes;
    let mut errors = Vec::new();
    if inline {
        let foreign = ["claimRef", "capacity"].into_iter().filter(|field| has(spec, &[field]));
        errors.extend(foreign.map(|field| FieldError::forbidden(path.field(field), NOT_INLINE)));
        if !has(spec, &["csi"]) {
            let problem = "has to be specified in the context of inline volumes";
            errors.push(FieldError::required(path.field("csi"), problem));
        }
    }
    let modes = items(spec, &["accessModes"]);
    if modes.is_empty() {
        errors.push(FieldError::required(path.field("accessModes"), ""));
    }
    errors.extend(bad_modes(&path.field("accessModes"), modes));
    if !inline {
        errors.extend(bad_capacity(&path.field("capacity"), spec));
    }
    errors.extend(bad_policy(&path.field("persistentVolumeReclaimPolicy"), spec, inline));
    if let Some(affinity) = value(spec, &["nodeAffinity"]).filter(|affinity| !affinity.is_null()) {
        if inline {
            errors.push(FieldError::forbidden(path.field("nodeAffinity"), NOT_INLINE));
        } else {
            errors.extend(bad_affinity(&path.field("nodeAffinity"), affinity));
        }
    }
    errors.extend(sources::validate(path, spec));
    if text(spec, &["hostPath", "path"]).trim_end_matches('/').is_empty()
        && has(spec, &["hostPath", "path"])
        && text(spec, &["persistentVolumeReclaimPolicy"]) == "Recycle"
    {
        let problem = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(path.field("persistentVolumeReclaimPolicy"), problem));
    }
    let class = text(spec, &["storageClassName"]);
    if !class.is_empty() && inline {
        errors.push(FieldError::forbidden(path.field("storageClassName"), NOT_INLINE));
    } else if !class.is_empty() {
        errors.extend(invalid_for(&path.field("storageClassName"), class, dns1123_subdomain(class)));
    }
    errors.extend(bad_mode_and_class(path, spec, inline));
    errors
}

fn bad_capacity(path: &Path<'_>, spec: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let capacity = value(spec, &["capacity"]).cloned().unwrap_or_default();
    let count = entries(spec, &["capacity"]).count();
    if count == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if count > 1 || !has(spec, &["capacity", "storage"]) {
        errors.push(FieldError::not_supported(path, capacity, &["storage"]));
    }
    for (resource, amount) in entries(spec, &["capacity"]) {
        let (path, amount) = (path.key(resource), amount.as_str().unwrap_or_default());
        errors.extend(bad_amount(&path, amount));
        errors.extend(not_positive(&path, amount));
    }
    errors
}

fn bad_policy(path: &Path<'_>, spec: &Object, inline: bool) -> Option<FieldError> {
    match text(spec, &["persistentVolumeReclaimPolicy"]) {
        "" => None,
        "Retain" if inline => None,
        _ if inline => {
            Some(FieldError::forbidden(path, "may only be Retain in the context of inline volumes"))
        }
        policy => unsupported(path, policy, &["Delete", "Recycle", "Retain"]),
    }
}

fn bad_affinity(path: &Path<'_>, affinity: &Value) -> Vec<FieldError> {
    let path = path.field("required");
    match affinity.get("required") {
        Some(required) => bad_node_selector(&path, required),
        None => vec![FieldError::required(path, "must specify required node constraints")],
    }
}

fn bad_mode_and_class(path: &Path<'_>, spec: &Object, inline: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match value(spec, &["volumeMode"]).and_then(Value::as_str) {
        Some(mode) if inline && mode != "Filesystem" => {
            let problem = "may not specify volumeMode other than Filesystem in the context of inline volumes";
            errors.push(FieldError::forbidden(path.field("volumeMode"), problem));
        }
        Some(mode) if !inline => {
            errors.extend(unsupported(&path.field("volumeMode"), mode, &["Block", "Filesystem"]));
        }
        _ => {}
    }
    let class = value(spec, &["volumeAttributesClassName"]).and_then(Value::as_str);
    if let Some(class) = class.filter(|_| !inline) {
        let class_path = path.field("volumeAttributesClassName");
        if class.is_empty() {
            errors.push(FieldError::required(class_path, "an empty string is disallowed"));
        } else {
            errors.extend(invalid_for(&class_path, class, dns1123_subdomain(class)));
        }
        if !has(spec, &["csi"]) {
            let problem = "has to be specified when using volumeAttributesClassName";
            errors.push(FieldError::required(path.field("csi"), problem));
        }
    }
    errors
}
