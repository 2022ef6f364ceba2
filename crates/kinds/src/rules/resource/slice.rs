//! ResourceSlice.

use model::Object;
use model::error::{FieldError, Path, quote};
use model::names::dns1123_subdomain;
use model::object::{entries, has, is_true, items, map_mut, maps_mut, number, text, value};
use serde_json::Value;

use super::GROUP;
use super::checks::{bad_driver, bad_label, bad_list, bad_pool, bad_qualified_name};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::core::bad_node_selector;
use crate::rules::label_selector::invalid;
use crate::rules::{KindRules, SelectableField};

const DEVICES_MAX: usize = 128;
const PROPERTIES_MAX: usize = 32;
const VALUE_LENGTH_MAX: usize = 64;

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "ResourceSlice",
    prepare_create: drop_disabled,
    prepare_update: |new, _| drop_disabled(new),
    validate_create: validate,
    validate_update,
    warnings: |object, _| {
        let driver = text(object, &["spec", "driver"]);
        let shouted = driver.chars().any(char::is_uppercase);
        let advice = "driver names should be lowercase";
        shouted
            .then(|| format!("spec.driver: {advice}; {} contains uppercase characters", quote(driver)))
            .into_iter()
            .collect()
    },
    counts_generations: true,
    selectable: &[
        SelectableField { path: "spec.nodeName", value: |object| text(object, &["spec", "nodeName"]).into() },
        SelectableField { path: "spec.driver", value: |object| text(object, &["spec", "driver"]).into() },
    ],
    columns: &[
        NAME,
        Column::new("Node", "string", "The node that has the devices."),
        Column::new("Driver", "string", "The driver of the devices."),
        Column::new("Pool", "string", "The pool that the devices belong to."),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, &["spec", "nodeName"]).into(),
            text(object, &["spec", "driver"]).into(),
            text(object, &["spec", "pool", "name"]).into(),
            age(object, now),
        ]
    },
    ..KindRules::PLAIN
};

fn drop_disabled(object: &mut Object) {
    let spec = map_mut(object, "spec");
    for field in ["sharedCounters", "perDeviceNodeSelection"] {
        spec.remove(field);
    }
    for device in maps_mut(spec, "devices") {
        for field in [
            "taints",
            "consumesCounters",
            "nodeName",
            "nodeSelector",
            "allNodes",
            "bindingConditions",
            "bindingFailureConditions",
            "bindsToNode",
            "allowMultipleAllocations",
        ] {
            device.remove(field);
        }
        let capacities = device.get_mut("capacity").and_then(Value::as_object_mut).into_iter().flatten();
        for capacity in capacities.filter_map(|(_, capacity)| capacity.as_object_mut()) {
            capacity.remove("requestPolicy");
        }
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    bad_spec(object, None)
}

fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    bad_spec(new, Some(old))
}

fn bad_spec(object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return Vec::new() };
    let mut errors = bad_driver(&Path::root("spec.driver"), text(spec, &["driver"]));
    errors.extend(bad_pool(&Path::root("spec.pool.name"), text(spec, &["pool", "name"])));
    for (field, least, detail) in [
        ("resourceSliceCount", 1, "must be greater than zero"),
        ("generation", 0, "must be greater than or equal to zero"),
    ] {
        let count = number(spec, &["pool", field]);
        if count < least {
            errors.push(FieldError::invalid(Path::SPEC.field("pool").field(field), count, detail));
        }
    }
    if let Some(old) = old.and_then(|old| value(old, &["spec"])).and_then(Value::as_object) {
        for place in [["pool", "name"].as_slice(), &["driver"], &["nodeName"]] {
            if value(spec, place) != value(old, place) {
                let path = format!("spec.{}", place.join("."));
                let changed = value(spec, place).cloned().unwrap_or_default();
                errors.push(FieldError::invalid(path, changed, "field is immutable"));
            }
        }
    }
    errors.extend(bad_nodes(spec));
    errors.extend(bad_list(
        &Path::root("spec.devices"),
        items(spec, &["devices"]),
        DEVICES_MAX,
        Some("name"),
        bad_device,
    ));
    errors
}

/// Validates that exactly one of node name, node selector and all nodes is set.
fn bad_nodes(spec: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut ways = Vec::new();
    if has(spec, &["nodeName"]) {
        match text(spec, &["nodeName"]) {
            "" => {
                let detail = "must be either unset or set to a non-empty string";
                errors.push(FieldError::invalid("spec.nodeName", "", detail));
            }
            node => {
                ways.push("`nodeName`");
                errors.extend(invalid(&Path::root("spec.nodeName"), node, dns1123_subdomain(node)));
            }
        }
    }
    if has(spec, &["nodeSelector"]) {
        ways.push("`nodeSelector`");
        let terms = items(spec, &["nodeSelector", "nodeSelectorTerms"]);
        let path = &Path::root("spec.nodeSelector.nodeSelectorTerms");
        let selector = value(spec, &["nodeSelector"]);
        errors.extend(
            selector.into_iter().flat_map(|it| bad_node_selector(&Path::root("spec.nodeSelector"), it)),
        );
        if terms.len() != 1 {
            errors.push(FieldError::invalid(
                path,
                terms.to_vec(),
                "must have exactly one node selector term",
            ));
        }
    }
    if has(spec, &["allNodes"]) {
        if is_true(spec, &["allNodes"]) {
            ways.push("`allNodes`");
        } else {
            let detail = "must be either unset or set to true";
            errors.push(FieldError::invalid("spec.allNodes", false, detail));
        }
    }
    let rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match ways.len() {
        0 => errors.push(FieldError::required("spec", rule)),
        1 => {}
        _ => {
            let detail = format!("{rule}, but multiple fields are set");
            errors.push(FieldError::invalid("spec", format!("{{{}}}", ways.join(", ")), detail));
        }
    }
    errors
}

fn bad_device(path: &Path<'_>, device: &Object) -> Vec<FieldError> {
    let mut errors = bad_label(&path.field("name"), text(device, &["name"]));
    let count = entries(device, &["attributes"]).count() + entries(device, &["capacity"]).count();
    if count > PROPERTIES_MAX {
        let detail =
            format!("the total number of attributes and capacities must not exceed {PROPERTIES_MAX}");
        errors.push(FieldError::invalid(path, count, detail));
    }
    let attributes = path.field("attributes");
    for (name, attribute) in entries(device, &["attributes"]) {
        let path = attributes.key(name);
        errors.extend(bad_qualified_name(&path, name));
        errors
            .extend(attribute.as_object().into_iter().flat_map(|attribute| bad_attribute(&path, attribute)));
    }
    for (name, _) in entries(device, &["capacity"]) {
        errors.extend(bad_qualified_name(&path.field("capacity").key(name), name));
    }
    errors
}

/// Validates an attribute, which has one value.
fn bad_attribute(path: &Path<'_>, attribute: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["string", "version"] {
        let (at, found) = (path.field(field), text(attribute, &[field]));
        if field == "version" && has(attribute, &["version"]) && !is_version(found) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            errors.push(FieldError::invalid(at, found, detail));
        }
        if found.len() > VALUE_LENGTH_MAX {
            errors.push(FieldError::too_long(at, VALUE_LENGTH_MAX));
        }
    }
    let values = ["bool", "int", "string", "version"].iter().filter(|field| has(attribute, &[field])).count();
    if values != 1 {
        let shown = if values == 0 { "\"\"".to_owned() } else { shown_attribute(attribute) };
        errors.push(FieldError::invalid_shown(path, &shown, "exactly one value must be specified"));
    }
    errors
}

/// An attribute as Go formats it.
fn shown_attribute(attribute: &Object) -> String {
    let fields =
        [("IntValue", "int"), ("BoolValue", "bool"), ("StringValue", "string"), ("VersionValue", "version")];
    let shown =
        fields.map(|(name, field)| format!("\"{name}\":{}", attribute.get(field).unwrap_or(&Value::Null)));
    format!("{{{}}}", shown.join(","))
}

/// Whether a text is a semantic version: three numbers, then optional pre-release and build identifiers.
fn is_version(text: &str) -> bool {
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (core, release) = match text.split_once('-') {
        Some((core, release)) => (core, Some(release)),
        None => (text, None),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric())
    };
    let is_release = |part: &str| is_word(part) && (!is_digits(part) || is_number(part));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && release.is_none_or(|release| release.split('.').all(is_release))
        && build.is_none_or(|build| build.split('.').all(is_word))
}
