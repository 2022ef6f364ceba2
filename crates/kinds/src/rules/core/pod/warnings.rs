//! Warnings about valid Pod specs.

use std::collections::BTreeMap;

use model::Object;
use model::address::ip_warning;
use model::error::{Path, quote};
use model::names::label_value;
use model::object::{entries, number, text};
use serde_json::Value;

use super::annotations::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD, of_containers};
use super::fields::{all_containers, object, objects, texts};
use super::overlaps::overlapping_paths;
use super::prepare;
use super::resources::fractional_bytes;
use crate::rules::storage::old_label as advice;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Deprecated and removed volume sources: the field, its name in warnings, and since when.
const OLD_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings about the spec of a Pod, or of the template at a path.
pub fn of(metadata: &Object, spec: &Object, path: &Path<'_>) -> Vec<String> {
    let is_pod = path.is_object();
    let (spec_path, annotations_path) = (path.field("spec"), path.field("metadata.annotations"));
    let mut warnings = Vec::new();
    old_node_labels(&mut warnings, spec, &spec_path);
    let empty = Object::new();
    let annotations = object(metadata, "annotations").unwrap_or(&empty);
    for (key, advice) in OLD_ANNOTATIONS {
        if annotations.contains_key(key) {
            warnings.push(format!("{annotations_path}[{key}]: {advice}"));
        }
    }
    for (index, volume) in objects(spec, "volumes") {
        for (field, shown, advice) in OLD_VOLUMES {
            if volume.contains_key(field) {
                warnings.push(format!("{spec_path}.volumes[{index}].{shown}: {advice}"));
            }
        }
    }
    overlapping_paths(&mut warnings, spec);
    duplicates(&mut warnings, spec, &spec_path, "hostAliases", "ip");
    duplicates(&mut warnings, spec, &spec_path, "imagePullSecrets", "name");
    for (index, secret) in objects(spec, "imagePullSecrets") {
        if text(secret, &["name"]).is_empty() {
            warnings.push(format!("{spec_path}.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
    for name in ["memory", "ephemeral-storage"] {
        fractional_bytes(&mut warnings, spec, "overhead", &spec_path, name);
    }
    let has_profile = |of: &Object, field: &str| {
        object(of, "securityContext").is_some_and(|context| context.contains_key(field))
    };
    if !has_profile(spec, "seccompProfile") && annotations.contains_key(SECCOMP_POD) {
        warnings.push(format!("{annotations_path}[{SECCOMP_POD}]: {SECCOMP_ADVICE}"));
    }
    let (seccomp, app_armor) =
        (of_containers(annotations, SECCOMP_CONTAINER), of_containers(annotations, APP_ARMOR));
    for (path, container) in all_containers(spec, &spec_path) {
        let name = text(container, &["name"]);
        if !has_profile(container, "seccompProfile") && seccomp(name).is_some() {
            warnings.push(format!("{annotations_path}[{SECCOMP_CONTAINER}{name}]: {SECCOMP_ADVICE}"));
        }
        let said = app_armor(name).map(prepare::profile);
        let of_pod = object(spec, "securityContext").and_then(|context| context.get("appArmorProfile"));
        let own = object(container, "securityContext").and_then(|context| context.get("appArmorProfile"));
        // Preparation has already copied a Pod's profile from the annotation.
        let is_told = match said {
            None => false,
            Some(said) if is_pod => said.is_none() || (own == said.as_ref() && own.is_some()),
            Some(said) => own.is_none() && (of_pod.is_none() || of_pod != said.as_ref()),
        };
        if is_told {
            let advice = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            warnings.push(format!("{annotations_path}[{APP_ARMOR}{name}]: {advice}"));
        }
        of_container(&mut warnings, container, &path);
    }
    ports(&mut warnings, spec, &spec_path);
    if number(spec, &["terminationGracePeriodSeconds"]) < 0 {
        let advice = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{spec_path}.terminationGracePeriodSeconds: {advice}"));
    }
    selectors_of_nothing(&mut warnings, spec, &spec_path);
    address_warnings(&mut warnings, spec, &spec_path);
    warnings
}

const SECCOMP_ADVICE: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

fn old_node_labels(warnings: &mut Vec<String>, spec: &Object, path: &Path<'_>) {
    for (key, _) in entries(spec, &["nodeSelector"]) {
        warnings.extend(advice(key).map(|advice| format!("{path}.nodeSelector[{key}]: {advice}")));
    }
    let nodes = object(spec, "affinity").and_then(|affinity| object(affinity, "nodeAffinity"));
    if let Some(nodes) = nodes {
        let path = path.field("affinity.nodeAffinity");
        if let Some(required) = object(nodes, REQUIRED) {
            for (index, term) in objects(required, "nodeSelectorTerms") {
                node_term(warnings, term, &path.field(REQUIRED).item("nodeSelectorTerms", index), false);
            }
        }
        for (index, term) in objects(nodes, PREFERRED) {
            if let Some(term) = object(term, "preference") {
                node_term(warnings, term, &path.item(PREFERRED, index).field("preference"), true);
            }
        }
    }
    for (index, constraint) in objects(spec, "topologySpreadConstraints") {
        let path = path.item("topologySpreadConstraints", index);
        let key = text(constraint, &["topologyKey"]);
        warnings.extend(advice(key).map(|advice| format!("{path}.topologyKey: {key} is {advice}")));
        if !constraint.contains_key("labelSelector") {
            warnings.push(format!("{path}.labelSelector: {NOTHING}"));
        }
    }
}

const NOTHING: &str = "a null labelSelector results in matching no pod";

fn node_term(warnings: &mut Vec<String>, term: &Object, path: &Path<'_>, checks_values: bool) {
    for (index, expression) in objects(term, "matchExpressions") {
        let path = path.item("matchExpressions", index);
        let key = text(expression, &["key"]);
        warnings.extend(advice(key).map(|advice| format!("{path}.key: {key} is {advice}")));
        for (at, value) in texts(expression, "values").enumerate().filter(|_| checks_values) {
            let problems = label_value(value).into_iter();
            warnings.extend(
                problems.map(|problem| format!("{path}.values[{at}]: {value} is invalid, {problem}")),
            );
        }
    }
}

fn duplicates(warnings: &mut Vec<String>, spec: &Object, path: &Path<'_>, list: &str, field: &str) {
    let mut seen = Vec::new();
    for (index, item) in objects(spec, list) {
        let value = text(item, &[field]);
        if seen.contains(&value) {
            warnings.push(format!("{path}.{list}[{index}].{field}: duplicate {field} {}", quote(value)));
        } else {
            seen.push(value);
        }
    }
}

fn of_container(warnings: &mut Vec<String>, container: &Object, path: &Path<'_>) {
    if let Some(resources) = object(container, "resources") {
        let path = path.field("resources");
        for name in ["memory", "ephemeral-storage"] {
            for field in ["limits", "requests"] {
                fractional_bytes(warnings, resources, field, &path, name);
            }
        }
    }
    let mut names = Vec::new();
    for (index, variable) in objects(container, "env") {
        let (name, value) = (text(variable, &["name"]), text(variable, &["value"]));
        if !names.contains(&name) {
            names.push(name);
            continue;
        }
        let reference = format!("$({name})");
        if variable.contains_key("valueFrom") || value == reference || !value.contains(&reference) {
            let name = quote(name);
            warnings.push(format!(
                "{path}.env[{index}]: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
}

fn ports(warnings: &mut Vec<String>, spec: &Object, path: &Path<'_>) {
    let containers: Vec<(Path<'_>, &Object)> = all_containers(spec, path).collect();
    let mut known: BTreeMap<(i64, &str), Vec<(Path<'_>, &Object)>> = BTreeMap::new();
    for (path, container) in &containers {
        for (index, port) in objects(container, "ports") {
            let path = path.item("ports", index);
            let host = |port| (text(port, &["hostIP"]), number(port, &["hostPort"]));
            let (address, number_) = host(port);
            if !address.is_empty() && number_ == 0 {
                warnings.push(format!("{path}: hostIP set without hostPort: {}", go_port(port)));
            }
            let key = (number(port, &["containerPort"]), text(port, &["protocol"]));
            let others = known.entry(key).or_default();
            for (other_path, other) in others.iter() {
                let (other_address, other_number) = host(other);
                let kind = if (address, number_) == (other_address, other_number) {
                    "duplicate"
                } else if number_ == 0 || other_number == 0 {
                    "overlapping"
                } else if number_ == other_number && address.is_empty() != other_address.is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                warnings.push(format!("{path}: {kind} port definition with {other_path}"));
            }
            others.push((path, port));
        }
    }
    let mut names: BTreeMap<&str, Path<'_>> = BTreeMap::new();
    for (path, container) in &containers {
        for (index, port) in objects(container, "ports") {
            let (name, path) = (text(port, &["name"]), path.item("ports", index));
            match names.get(name) {
                _ if name.is_empty() => {}
                Some(other) => warnings.push(format!(
                    "{path}: duplicate port name {} with {other}, services and probes that select ports by name will \
                     use {other}",
                    quote(name)
                )),
                None => {
                    names.insert(name, path);
                }
            }
        }
    }
}

/// A port as Go prints one.
fn go_port(port: &Object) -> String {
    let fields = [
        ("Name", "name"),
        ("HostPort", "hostPort"),
        ("ContainerPort", "containerPort"),
        ("Protocol", "protocol"),
        ("HostIP", "hostIP"),
    ];
    let shown = fields.map(|(name, field)| {
        let value = match port.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None if field.ends_with("Port") => "0".to_owned(),
            None => String::new(),
        };
        format!("{name}:{value}")
    });
    format!("{{{}}}", shown.join(" "))
}

fn selectors_of_nothing(warnings: &mut Vec<String>, spec: &Object, path: &Path<'_>) {
    let Some(affinity) = object(spec, "affinity") else { return };
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = object(affinity, field) else { continue };
        let path = path.field("affinity");
        let path = path.field(field);
        for (index, term) in objects(pods, REQUIRED) {
            if !term.contains_key("labelSelector") {
                warnings.push(format!("{path}.{REQUIRED}[{index}].labelSelector: {NOTHING}"));
            }
        }
        for (index, term) in objects(pods, PREFERRED) {
            if !object(term, "podAffinityTerm").is_some_and(|term| term.contains_key("labelSelector")) {
                warnings
                    .push(format!("{path}.{PREFERRED}[{index}].podAffinityTerm.labelSelector: {NOTHING}"));
            }
        }
    }
}

fn address_warnings(warnings: &mut Vec<String>, spec: &Object, path: &Path<'_>) {
    if let Some(config) = object(spec, "dnsConfig") {
        for (index, address) in texts(config, "nameservers").enumerate() {
            warnings.extend(ip_warning(&path.item("dnsConfig.nameservers", index), address));
        }
    }
    for (index, alias) in objects(spec, "hostAliases") {
        warnings.extend(ip_warning(&path.item("hostAliases", index).field("ip"), text(alias, &["ip"])));
    }
}
