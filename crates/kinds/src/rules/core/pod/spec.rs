//! Validation of a Pod spec, in Kubernetes' order.

use model::Object;
use model::address::bad_ip;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain, dns1123_subdomain_underscore, qualified_name};
use model::object::{is_true, items, number, text};
use serde_json::Value;

use super::containers::{self, Surroundings};
use super::fields::{Errors, invalid, object, objects, require_one_of, set_text, texts, within};
use super::{annotations, go, resources, scheduling, security, volumes};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_SIZE_MAX: usize = 2048;
const HOSTNAME_MAX: usize = 64;

/// Validates a Pod template.
pub fn check_template(errors: &mut Errors, template: &Object, path: &Path<'_>) {
    let (empty, spec_path) = (Object::new(), path.field("spec"));
    let metadata = object(template, "metadata").unwrap_or(&empty);
    let spec = object(template, "spec").unwrap_or(&empty);
    annotations::check_labels(errors, metadata.get("labels"), &path.field("labels"));
    let annotations_path = path.field("annotations");
    annotations::check_annotations(errors, metadata, &annotations_path);
    annotations::check_known(errors, metadata, spec, &annotations_path);
    check(errors, spec, &spec_path, None);
    annotations::check_agreement(errors, metadata, spec, &spec_path);
    if !items(spec, &["ephemeralContainers"]).is_empty() {
        let rule = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(spec_path.field("ephemeralContainers"), rule));
    }
}

/// Validates a Pod spec; `pod` is set if it is not that of a template.
pub fn check(errors: &mut Errors, spec: &Object, path: &Path<'_>, pod: Option<&Object>) {
    let name = pod.map(|metadata| text(metadata, &["name"]));
    let good = volumes::check(errors, spec, &path.field("volumes"), name);
    check_claims(errors, spec, &path.field("resourceClaims"), pod);
    let claims = resources::claim_names(spec);
    containers::check(errors, &Surroundings { spec, volumes: &good, claims: &claims }, path);
    resources::check_pod(errors, spec, path, &claims);
    check_host_network(errors, spec, path, pod.is_some());
    require_one_of(errors, spec, path, "restartPolicy", &RESTART_POLICIES);
    require_one_of(errors, spec, path, "dnsPolicy", &DNS_POLICIES);
    annotations::check_labels(errors, spec.get("nodeSelector"), &path.field("nodeSelector"));
    security::check_pod(errors, spec, path);
    scheduling::check_affinity(errors, spec, path);
    check_dns(errors, spec, &path.field("dnsConfig"));
    check_gates(errors, spec, path);
    scheduling::check_spread(errors, spec, &path.field("topologySpreadConstraints"));
    security::check_host_processes(errors, spec, path);
    security::check_host_users(errors, spec, path);
    check_names(errors, spec, path);
    scheduling::check_tolerations(errors, spec, &path.field("tolerations"));
    check_aliases(errors, spec, &path.field("hostAliases"));
    check_class_names(errors, spec, path);
    resources::check_overhead(errors, spec, path);
    security::check_os(errors, spec, path);
    volumes::check_file_variables(errors, spec, path);
}

fn check_claims(errors: &mut Errors, spec: &Object, path: &Path<'_>, pod: Option<&Object>) {
    let mut names = Vec::new();
    for (index, claim) in objects(spec, "resourceClaims") {
        if pod
            .and_then(|pod| object(pod, "annotations"))
            .is_some_and(|said| said.contains_key(annotations::MIRROR))
        {
            errors.push(FieldError::forbidden("", "static pods do not support resource claims"));
            continue;
        }
        let path = path.at(index);
        let name = text(claim, &["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        } else if names.contains(&name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        } else {
            invalid(errors, &path.field("name"), name, dns1123_label(name));
            names.push(name);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let rule = match sources.iter().filter(|field| claim.contains_key(**field)).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        errors.extend(rule.map(|rule| {
            let shown = Value::Object(claim.clone());
            go::invalid(&path, Some(&shown), &go::CLAIM, rule)
        }));
        for field in sources {
            if let Some(name) = set_text(claim, field) {
                invalid(errors, &path.field(field), name, dns1123_subdomain(name));
            }
        }
    }
}

/// With host networking, a container port is the host port.
fn check_host_network(errors: &mut Errors, spec: &Object, path: &Path<'_>, in_pod: bool) {
    if !is_true(spec, &["hostNetwork"]) {
        return;
    }
    for (index, container) in objects(spec, "containers") {
        for (at, port) in objects(container, "ports") {
            let (host, own) = (number(port, &["hostPort"]), number(port, &["containerPort"]));
            if (in_pod || host != 0) && host != own {
                let path = path.item("containers", index);
                let path = path.item("ports", at);
                let rule = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(path.field("hostPort"), host, rule));
            }
        }
    }
}

fn check_dns(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let config = object(spec, "dnsConfig");
    let has_servers = config.is_some_and(|config| !items(config, &["nameservers"]).is_empty());
    if text(spec, &["dnsPolicy"]) == "None" && !has_servers {
        errors.push(match config {
            None => FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"),
            Some(_) => {
                let rule = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                FieldError::required(path.field("nameservers"), rule)
            }
        });
        return;
    }
    let Some(config) = config else { return };
    let list = |field: &str| config.get(field).cloned().unwrap_or_default();
    let servers = path.field("nameservers");
    if texts(config, "nameservers").count() > NAMESERVERS_MAX {
        let rule = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(FieldError::invalid(servers, list("nameservers"), rule));
    }
    for (index, server) in texts(config, "nameservers").enumerate() {
        errors.extend(bad_ip(&servers.at(index), server, &[]));
    }
    let searches = path.field("searches");
    let count = texts(config, "searches").count();
    if count > SEARCHES_MAX {
        let rule = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(FieldError::invalid(searches, list("searches"), rule));
    }
    if texts(config, "searches").map(str::len).sum::<usize>() + count.saturating_sub(1) > SEARCHES_SIZE_MAX {
        let rule = format!(
            "must not have more than {SEARCHES_SIZE_MAX} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(searches, list("searches"), rule));
    }
    for (index, search) in texts(config, "searches").enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        invalid(errors, &searches.at(index), search, dns1123_subdomain_underscore(search));
    }
    for (index, option) in objects(config, "options") {
        if text(option, &["name"]).is_empty() {
            errors.push(FieldError::required(path.item("options", index), "must not be empty"));
        }
    }
}

fn check_gates(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    for (index, gate) in objects(spec, "readinessGates") {
        let kind = text(gate, &["conditionType"]);
        invalid(
            errors,
            &path.item("readinessGates", index).field("conditionType"),
            kind,
            qualified_name(kind),
        );
    }
    let mut seen = Vec::new();
    for (index, gate) in objects(spec, "schedulingGates") {
        let path = path.item("schedulingGates", index);
        let name = text(gate, &["name"]);
        invalid(errors, &path, name, qualified_name(name));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        }
        seen.push(name);
    }
}

fn check_names(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    if let Some(name) = set_text(spec, "hostnameOverride") {
        let path = path.field("hostnameOverride");
        for (field, rule) in [("setHostnameAsFQDN", "setHostnameAsFQDN"), ("hostNetwork", "hostNetwork")] {
            if is_true(spec, &[field]) {
                errors.push(FieldError::forbidden(path, format!("may not be specified when {rule} is true")));
            }
        }
        if name.len() > HOSTNAME_MAX {
            errors.push(FieldError::too_long(path, HOSTNAME_MAX));
        }
        invalid(errors, &path, name, dns1123_subdomain(name));
    }
    let mut check = |field: &str, rule: fn(&str) -> Vec<String>| {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            invalid(errors, &path.field(field), name, rule(name));
        }
    };
    check("serviceAccountName", dns1123_subdomain);
    check("nodeName", dns1123_subdomain);
    within(errors, spec, path, "activeDeadlineSeconds", 1, i64::from(i32::MAX));
    let mut check = |field: &str| {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            invalid(errors, &path.field(field), name, dns1123_label(name));
        }
    };
    check("hostname");
    check("subdomain");
}

fn check_aliases(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    for (index, alias) in objects(spec, "hostAliases") {
        errors.extend(bad_ip(&path.at(index).field("ip"), text(alias, &["ip"]), &[]));
        for (at, name) in texts(alias, "hostnames").enumerate() {
            invalid(errors, &path.at(index).item("hostnames", at), name, dns1123_subdomain(name));
        }
    }
}

fn check_class_names(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let priority = text(spec, &["priorityClassName"]);
    if !priority.is_empty() {
        invalid(errors, &path.field("priorityClassName"), priority, dns1123_subdomain(priority));
    }
    if let Some(class) = set_text(spec, "runtimeClassName") {
        invalid(errors, &path.field("runtimeClassName"), class, dns1123_subdomain(class));
    }
    if spec.contains_key("preemptionPolicy") {
        require_one_of(errors, spec, path, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
    }
}
