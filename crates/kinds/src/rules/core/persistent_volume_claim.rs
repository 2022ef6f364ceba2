//! PersistentVolumeClaim.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain, qualified_name};
use model::object::{copy, entries, has, items, map_mut, set_default, text, text_in, value};
use serde_json::{Value, json};

use super::persistent_volume::{bad_modes, class, or_unset, phase, short_modes};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::{invalid_for, keep_all_but_status, unsupported};
use crate::rules::label_selector::bad_label_selector;
use crate::rules::quantities::{bad_amount, is_fractional, negative, not_positive};
use crate::rules::{KindRules, Subresource};
use quantity::Quantity;

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const REQUEST: [&str; 4] = ["spec", "resources", "requests", "storage"];
const CLASS: [&str; 2] = ["spec", "storageClassName"];
const ATTRIBUTES_CLASS: [&str; 2] = ["spec", "volumeAttributesClassName"];

pub(super) const RULES: KindRules = KindRules {
    kind: "PersistentVolumeClaim",
    default: |object| {
        set_default(map_mut(object, "spec"), "volumeMode", "Filesystem");
        set_default(map_mut(object, "status"), "phase", "Pending");
    },
    prepare_create: |object| {
        object.insert("status".to_owned(), json!({"phase": "Pending"}));
        sync_data_sources(object, None);
    },
    prepare_update: |new, old| {
        copy(new, old, "status");
        sync_data_sources(new, Some(old));
    },
    validate_create: validate,
    validate_update,
    warnings: |object, _| warnings(object),
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |new, _| bad_status(new),
    }],
    columns: &[
        NAME,
        Column::new("Status", "string", "The phase of the claim."),
        Column::new("Volume", "string", "The bound volume."),
        Column::new("Capacity", "string", "The capacity of the bound volume."),
        Column::new("Access Modes", "string", "The access modes of the bound volume."),
        Column::new("StorageClass", "string", "The requested StorageClass."),
        Column::new("VolumeAttributesClass", "string", "The VolumeAttributesClass of the volume."),
        AGE,
        Column::new("VolumeMode", "string", "Filesystem or block device.").wide(),
    ],
    cells,
    ..KindRules::PLAIN
};

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let volume = text(object, &["spec", "volumeName"]);
    let (mut capacity, mut modes) = ("", String::new());
    if !volume.is_empty() {
        let size = value(object, &["status", "capacity", "storage"]);
        capacity = size.and_then(Value::as_str).unwrap_or("0");
        modes = short_modes(items(object, &["status", "accessModes"]));
    }
    vec![
        name(object),
        phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class(object).into(),
        or_unset(object, &ATTRIBUTES_CLASS).into(),
        age(object, now),
        or_unset(object, &["spec", "volumeMode"]).into(),
    ]
}

/// Synchronizes `dataSource` and `dataSourceRef`; unsupported kinds of `dataSource` are dropped.
fn sync_data_sources(object: &mut Object, old: Option<&Object>) {
    let used =
        old.is_some_and(|old| has(old, &["spec", "dataSource"]) || has(old, &["spec", "dataSourceRef"]));
    let spec = map_mut(object, "spec");
    if !text(spec, &["dataSourceRef", "namespace"]).is_empty() {
        spec.remove("dataSourceRef");
    }
    let known = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
    let source = (text(spec, &["dataSource", "apiGroup"]), text(spec, &["dataSource", "kind"]));
    if !used && !has(spec, &["dataSourceRef"]) && !known.contains(&source) {
        spec.remove("dataSource");
    }
    let copy = match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => Some(("dataSourceRef", source.clone())),
        (None, Some(reference)) => Some(("dataSource", reference.clone())),
        _ => None,
    };
    if let Some((field, value)) = copy {
        spec.insert(field.to_owned(), value);
    }
}

/// Validates the template of a claim at a path.
pub(in crate::rules) fn bad_claim_template(path: &Path<'_>, claim: &Object) -> Vec<FieldError> {
    let below = |error: FieldError| FieldError { path: format!("{path}.{}", error.path), ..error };
    validate(claim).into_iter().map(below).collect()
}

/// Validates a claim.
fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let modes = items(object, &["spec", "accessModes"]);
    if modes.is_empty() {
        errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
    }
    errors.extend(bad_label_selector(&Path::root("spec.selector"), value(object, &["spec", "selector"])));
    errors.extend(bad_modes(&Path::root("spec.accessModes"), modes));
    match value(object, &REQUEST).and_then(Value::as_str) {
        None => errors.push(FieldError::required("spec.resources[storage]", "")),
        Some(amount) => errors.extend(not_positive(&Path::root("spec.resources[storage]"), amount)),
    }
    errors.extend(bad_class(object, "storageClassName"));
    if let Some(mode) = value(object, &["spec", "volumeMode"]).and_then(Value::as_str) {
        errors.extend(unsupported(&Path::root("spec.volumeMode"), mode, &["Block", "Filesystem"]));
    }
    errors.extend(bad_sources(object));
    errors.extend(bad_class(object, "volumeAttributesClassName"));
    errors
}

fn bad_class(object: &Object, field: &str) -> Vec<FieldError> {
    match text(object, &["spec", field]) {
        "" => Vec::new(),
        class => invalid_for(&Path::SPEC.field(field), class, dns1123_subdomain(class)),
    }
}

fn bad_sources(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["dataSource", "dataSourceRef"] {
        if let Some(source) = value(object, &["spec", field]).filter(|source| source.is_object()) {
            errors.extend(bad_source(&Path::SPEC.field(field), source));
        }
    }
    let of = |field: &str, part: &str| value(object, &["spec", field, part]);
    let both = has(object, &["spec", "dataSource"]) && has(object, &["spec", "dataSourceRef"]);
    let differ =
        ["apiGroup", "kind", "name"].iter().any(|part| of("dataSource", part) != of("dataSourceRef", part));
    if both && differ {
        errors.push(FieldError::invalid("spec", json!({}), "must match dataSourceRef"));
    }
    errors
}

fn bad_source(path: &Path<'_>, source: &Value) -> Vec<FieldError> {
    let (group, kind) = (text_in(source, "apiGroup"), text_in(source, "kind"));
    let mut errors = Vec::new();
    for field in ["name", "kind"] {
        if text_in(source, field).is_empty() {
            errors.push(FieldError::required(path.field(field), ""));
        }
    }
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(path, kind, problem));
    }
    if !group.is_empty() {
        errors.extend(invalid_for(&path.field("apiGroup"), group, dns1123_subdomain(group)));
    }
    let namespace = text_in(source, "namespace");
    if !namespace.is_empty() {
        errors.extend(invalid_for(&path.field("namespace"), namespace, dns1123_label(namespace)));
    }
    errors
}

fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = validate(new);
    let annotation =
        |object| value(object, &["metadata", "annotations", CLASS_ANNOTATION]).and_then(Value::as_str);
    let (old_class, new_class) = (value(old, &CLASS), value(new, &CLASS).and_then(Value::as_str));
    let by_annotation = old_class.is_none()
        && annotation(old).is_some_and(|class| {
            new_class == Some(class) && annotation(new).is_none_or(|annotation| annotation == class)
        });
    if !by_annotation && annotation(new) != annotation(old) {
        let annotations = Path::METADATA.field("annotations");
        let path = annotations.key(CLASS_ANNOTATION);
        let value = annotation(new).unwrap_or_default();
        errors.push(FieldError::invalid(path, value, "field is immutable"));
    }
    if let (Some(Value::Object(is)), Some(Value::Object(was))) = (new.get("spec"), old.get("spec"))
        && !same_spec(is, was, text(new, &["status", "phase"]) == "Bound")
    {
        let problem = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                       bound claims\n";
        errors.push(FieldError::forbidden("spec", problem));
    }
    errors.extend(shrunk(new, old));
    let mode = value(new, &["spec", "volumeMode"]);
    if mode != value(old, &["spec", "volumeMode"]) {
        let mode = mode.cloned().unwrap_or_default();
        errors.push(FieldError::invalid("volumeMode", mode, "field is immutable"));
    }
    errors.extend(dropped_class(new, old));
    errors
}

/// Whether only mutable fields have changed.
fn same_spec(new: &Object, old: &Object, bound: bool) -> bool {
    let mut fields: Vec<&String> = new.keys().chain(old.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    fields.into_iter().all(|field| {
        let (is, was) = (new.get(field), old.get(field));
        let free = match field.as_str() {
            "volumeName" | "storageClassName" => was.is_none(),
            "volumeAttributesClassName" => bound,
            "resources" if bound => {
                let rest = |resources: Option<&Value>| {
                    let mut rest = resources.cloned().unwrap_or_default();
                    if let Some(Value::Object(requests)) = rest.get_mut("requests") {
                        requests.remove("storage");
                    }
                    rest
                };
                rest(is) == rest(was)
            }
            _ => false,
        };
        free || is == was
    })
}

fn shrunk(new: &Object, old: &Object) -> Option<FieldError> {
    let amount = |object, path: &[&str]| Quantity::parse(text(object, path)).ok();
    let (is, was) = (amount(new, &REQUEST)?, amount(old, &REQUEST)?);
    let least = amount(old, &["status", "capacity", "storage"]);
    let too_small = is < was && least.map_or(is.is_zero() || is.is_negative(), |least| is <= least);
    too_small.then(|| {
        let path = &Path::root("spec.resources.requests.storage");
        FieldError::forbidden(path, "field can not be less than status.capacity")
    })
}

fn dropped_class(new: &Object, old: &Object) -> Option<FieldError> {
    if !has(old, &["status", "currentVolumeAttributesClassName"]) {
        return None;
    }
    let to = match value(new, &ATTRIBUTES_CLASS).and_then(Value::as_str) {
        None => "nil",
        Some("") if value(old, &ATTRIBUTES_CLASS).is_none_or(|class| class != "") => "empty string",
        Some(_) => return None,
    };
    let problem =
        format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
    Some(FieldError::forbidden("spec.volumeAttributesClassName", problem))
}

fn bad_status(new: &Object) -> Vec<FieldError> {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let mut errors = Vec::new();
    for (resource, amount) in entries(new, &["status", "capacity"]) {
        let path = Path::STATUS.field("capacity");
        errors.extend(bad_amount(&path.key(resource), amount.as_str().unwrap_or_default()));
    }
    let path = &Path::root("status.allocatedResourceStatuses");
    for (resource, state) in entries(new, &["status", "allocatedResourceStatuses"]) {
        errors.extend(bad_resource(path, resource));
        if !STATES.contains(&state.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(path, resource.as_str(), &STATES));
        }
    }
    let path = &Path::root("status.allocatedResources");
    for (resource, amount) in entries(new, &["status", "allocatedResources"]) {
        let wrong = bad_resource(path, resource);
        if !wrong.is_empty() {
            errors.extend(wrong);
            continue;
        }
        let (path, amount) = (path.key(resource), amount.as_str().unwrap_or_default());
        errors.extend(bad_amount(&path, amount).or_else(|| negative(&path, amount)));
    }
    errors
}

fn bad_resource(path: &Path<'_>, resource: &str) -> Vec<FieldError> {
    let problems = qualified_name(resource);
    let native = !resource.contains('/') || resource.contains("kubernetes.io/");
    if problems.is_empty() && native && resource != "storage" {
        return vec![FieldError::not_supported(path, resource, &["storage"])];
    }
    invalid_for(path, resource, problems)
}

fn warnings(object: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    if has(object, &["metadata", "annotations", CLASS_ANNOTATION]) {
        let advice = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        warnings.push(format!("metadata.annotations[{CLASS_ANNOTATION}]: {advice}"));
    }
    for list in ["requests", "limits"] {
        let amount = text(object, &["spec", "resources", list, "storage"]);
        if is_fractional(amount) {
            let path = Path::SPEC.field("resources");
            warnings.push(format!(
                "{path}.{list}[storage]: fractional byte value \"{amount}\" is invalid, must be an integer"
            ));
        }
    }
    warnings
}
