//! Node.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;
use model::address::{Range, bad_range};
use model::error::{FieldError, Path, quote};
use model::names::{label_value, qualified_name};
use model::object::{copy, entries, has, is_true, items, map_mut, text, text_in};
use serde_json::{Value, json};

use super::resource_name::{COUNTED, is_native};
use crate::rules::columns::{AGE, Column, NAME, age, name, or_none};
use crate::rules::common::{invalid_for, keep_all_but_status, unsupported};
use crate::rules::quantities::{is_fractional, negative};
use crate::rules::{KindRules, SelectableField, Subresource};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const RANGES: &str = "spec.podCIDRs";
const FEATURE_LENGTH: usize = 253;
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

pub(super) const RULES: KindRules = KindRules {
    kind: "Node",
    default: |object| {
        sync_pod_cidrs(map_mut(object, "spec"));
        let status = map_mut(object, "status");
        if !has(status, &["allocatable"])
            && let Some(capacity) = status.get("capacity").cloned()
        {
            status.insert("allocatable".to_owned(), capacity);
        }
    },
    prepare_create: |object| {
        let spec = map_mut(object, "spec");
        spec.remove("configSource");
        // A node that no kubelet has reported ready yet gets no Pods.
        let taints = spec.entry("taints").or_insert_with(|| json!([]));
        let is_not_ready =
            |taint: &Value| text_in(taint, "key") == NOT_READY && text_in(taint, "effect") == EFFECTS[0];
        if let Value::Array(taints) = taints
            && !taints.iter().any(is_not_ready)
        {
            taints.push(json!({"key": NOT_READY, "effect": EFFECTS[0]}));
        }
    },
    prepare_update: |new, old| {
        copy(new, old, "status");
        if !has(old, &["spec", "configSource"]) {
            map_mut(new, "spec").remove("configSource");
        }
    },
    validate_create: validate,
    // Kubernetes validates an update like a create, too, and reports some errors twice.
    validate_update: |new, old| [validate(new), validate_update(new, old)].concat(),
    warnings: |new, _| {
        let is_named = !text(new, &["spec", "externalID"]).is_empty();
        let warning = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        is_named.then(|| warning.to_owned()).into_iter().collect()
    },
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| {
            keep_all_but_status(new, old);
            map_mut(new, "status").remove("config");
        },
        validate_update,
    }],
    selectable: &[SelectableField {
        path: "spec.unschedulable",
        value: |object| {
            if is_true(object, &["spec", "unschedulable"]) { "true".into() } else { "false".into() }
        },
    }],
    columns: &[
        NAME,
        Column::new("Status", "string", "The conditions of the node."),
        Column::new("Roles", "string", "The roles of the node."),
        AGE,
        Column::new("Version", "string", "The version of its kubelet."),
        Column::new("Internal-IP", "string", "The address inside the cluster.").wide(),
        Column::new("External-IP", "string", "The address outside the cluster.").wide(),
        Column::new("OS-Image", "string", "The operating system of the node.").wide(),
        Column::new("Kernel-Version", "string", "The version of its kernel.").wide(),
        Column::new("Container-Runtime", "string", "The container runtime of the node.").wide(),
    ],
    cells,
    ..KindRules::PLAIN
};

/// Synchronizes `podCIDR` of older clients with `podCIDRs`; if they differ, `podCIDR` wins.
fn sync_pod_cidrs(spec: &mut Object) {
    let (one, first) = (text(spec, &["podCIDR"]).to_owned(), items(spec, &["podCIDRs"]).first().cloned());
    match (one.as_str(), first) {
        ("", Some(first)) => {
            spec.insert("podCIDR".to_owned(), first);
        }
        ("", None) => {}
        (one, Some(first)) if first == one => {}
        (one, _) => {
            spec.insert("podCIDRs".to_owned(), json!([one]));
        }
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = bad_taints(object);
    errors.extend(bad_resources(object));
    errors.extend(bad_ranges(object));
    errors.extend(bad_features(object));
    errors
}

/// Validates declared features: their names, sorted and unique.
fn bad_features(object: &Object) -> Vec<FieldError> {
    let features = items(object, &["status", "declaredFeatures"]);
    let path = Path::root("status.declaredFeatures");
    let mut errors = Vec::new();
    let mut before = None;
    for (index, feature) in features.iter().enumerate() {
        let feature = feature.as_str().unwrap_or_default();
        match before {
            Some(before) if before == feature => {
                errors.push(FieldError::duplicate(path.at(index), feature));
            }
            Some(before) if before > feature => {
                let problem = "list must be sorted alphabetically";
                errors.push(FieldError::invalid(path.at(index), feature, problem));
            }
            _ => {}
        }
        errors.extend(
            bad_feature(feature).map(|problem| FieldError::invalid(path.at(index), feature, problem)),
        );
        before = Some(feature);
    }
    errors
}

fn bad_feature(name: &str) -> Option<String> {
    if name.len() > FEATURE_LENGTH {
        let limit = format!("must be no more than {FEATURE_LENGTH} characters");
        return Some(format!("invalid feature name {}: {limit}", quote(name)));
    }
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.chars().all(|letter| letter.is_ascii_alphanumeric())
    };
    let is_right = name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(is_part);
    (!is_right).then(|| {
        format!(
            "invalid feature name {}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
            quote(name)
        )
    })
}

fn bad_ranges(object: &Object) -> Vec<FieldError> {
    let ranges = items(object, &["spec", "podCIDRs"]);
    let texts = || ranges.iter().map(|range| range.as_str().unwrap_or_default());
    let each = texts().enumerate();
    let mut errors: Vec<FieldError> =
        each.filter_map(|(index, range)| bad_range(&Path::root(RANGES).at(index), range, &[])).collect();
    let families: BTreeSet<bool> = texts().filter_map(Range::parse).map(Range::is_ipv6).collect();
    let broken = texts().enumerate().find(|(_, range)| Range::parse(range).is_none());
    if let Some((index, range)) = broken.filter(|_| ranges.len() > 1) {
        let why = format!("invalid CIDR[{index}]: <nil> (invalid CIDR address: {range})");
        let problem = format!("invalid PodCIDRs. failed to check with dual stack with error:{why}");
        errors.push(FieldError::internal(RANGES, problem));
    }
    if ranges.len() > 2 || (ranges.len() == 2 && families.len() < 2) {
        let problem = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(RANGES, Value::Array(ranges.to_vec()), problem));
    }
    errors
}

fn bad_taints(object: &Object) -> Vec<FieldError> {
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut errors = Vec::new();
    for (index, taint) in items(object, &["spec", "taints"]).iter().enumerate() {
        let path = Path::METADATA.item("taints", index);
        let field = |field| text_in(taint, field);
        errors.extend(invalid_for(&path.field("key"), field("key"), qualified_name(field("key"))));
        let problems = label_value(field("value"));
        if !problems.is_empty() {
            errors.push(FieldError::invalid(path.field("value"), field("value"), problems.join(";")));
        }
        match field("effect") {
            "" => errors.push(FieldError::required(path.field("effect"), "")),
            effect => errors.extend(unsupported(&path.field("effect"), effect, &EFFECTS)),
        }
        if !known.entry(field("effect")).or_default().insert(field("key")) {
            let time = taint.get("timeAdded").unwrap_or(&Value::Null);
            let shown = format!(
                "{{\"Key\":\"{}\",\"Value\":\"{}\",\"Effect\":\"{}\",\"TimeAdded\":{time}}}",
                field("key"),
                field("value"),
                field("effect")
            );
            let mut error = FieldError::duplicate(path, "");
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error.showing(&shown));
        }
    }
    errors
}

fn bad_resources(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in ["capacity", "allocatable"] {
        let path = Path::STATUS.field(list);
        for (resource, amount) in entries(object, &["status", list]) {
            let (path, amount) = (path.field(resource), amount.as_str().unwrap_or_default());
            errors.extend(negative(&path, amount));
            if is_whole(resource) && is_fractional(amount) {
                errors.push(FieldError::invalid(path, amount, "must be an integer"));
            }
        }
    }
    errors
}

/// Whether a resource has only integer quantities: object counts and extended resources.
fn is_whole(resource: &str) -> bool {
    COUNTED.contains(&resource) || !is_native(resource)
}

fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = bad_resources(new);
    errors.extend(bad_features(new));
    let addresses = items(new, &["status", "addresses"]);
    for (index, address) in addresses.iter().enumerate() {
        if addresses[..index].contains(address) {
            let shown = format!(
                "{{\"Type\":\"{}\",\"Address\":\"{}\"}}",
                text_in(address, "type"),
                text_in(address, "address")
            );
            errors.push(FieldError::duplicate(Path::STATUS.item("addresses", index), "").showing(&shown));
        }
    }
    let fixed = |field: &str| format!("node updates may not change {field} except from \"\" to valid");
    let (was, is) = (items(old, &["spec", "podCIDRs"]), items(new, &["spec", "podCIDRs"]));
    let changes = match (was.is_empty(), was.len() == is.len()) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => was.iter().zip(is).filter(|(was, is)| was != is).count(),
    };
    errors.extend((0..changes).map(|_| FieldError::forbidden(RANGES, fixed("podCIDR"))));
    let provider = |object| text(object, &["spec", "providerID"]);
    if !provider(old).is_empty() && provider(old) != provider(new) {
        errors.push(FieldError::forbidden("spec.providerID", fixed("providerID")));
    }
    errors.extend(bad_taints(new));
    if text(new, &["spec", "externalID"]) != text(old, &["spec", "externalID"]) {
        errors.push(FieldError::forbidden("spec.externalID", "may not be updated"));
    }
    errors
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let ready =
        items(object, &["status", "conditions"]).iter().rfind(|other| text_in(other, "type") == "Ready");
    let mut status = match ready.map(|ready| text_in(ready, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if is_true(object, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let roles: BTreeSet<&str> = entries(object, &["metadata", "labels"])
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let address = |kind: &str| {
        let addresses = items(object, &["status", "addresses"]);
        let own = addresses.iter().find(|address| text_in(address, "type") == kind);
        Value::from(own.map_or("<none>", |own| text_in(own, "address")))
    };
    let info = |field| text(object, &["status", "nodeInfo", field]);
    let known = |field| Value::from(if info(field).is_empty() { "<unknown>" } else { info(field) });
    vec![
        name(object),
        status.into(),
        or_none(roles.into_iter().collect::<Vec<_>>().join(",")),
        age(object, now),
        info("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        known("osImage"),
        known("kernelVersion"),
        known("containerRuntimeVersion"),
    ]
}
