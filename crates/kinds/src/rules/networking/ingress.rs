//! Ingress.

use model::Object;
use model::address::{bad_ip, bad_port, bad_port_name, ip};
use model::error::{FieldError, Path};
use model::names::{dns1035_label, dns1123_subdomain, wildcard_subdomain};
use model::object::{copy, has, items, items_in, text_in, value};
use serde_json::{Value, json};

use super::{GROUP, bad_reference};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::{invalid_for, keep_all_but_status};
use crate::rules::core::{balancer_addresses, balancer_host};
use crate::rules::{KindRules, Subresource};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const SUFFIXES: [&str; 2] = ["/..", "/."];

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "Ingress",
    prepare_create: |object| {
        object.insert("status".to_owned(), json!({"loadBalancer": {}}));
    },
    prepare_update: |new, old| copy(new, old, "status"),
    validate_create: |object| {
        let mut errors = validate(object);
        let class = value(object, &["spec", "ingressClassName"]).and_then(Value::as_str);
        let annotation = annotation(object);
        if let (Some(class), Some(annotation)) = (class, annotation)
            && class != annotation
        {
            let path = format!("annotations.{CLASS_ANNOTATION}");
            let problem = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(path, annotation, problem));
        }
        errors
    },
    validate_update: |new, _| validate(new),
    warnings: |new, old| {
        let old_way = old.is_none() && annotation(new).is_some() && !has(new, &["spec", "ingressClassName"]);
        let text = format!(
            "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
        );
        old_way.then_some(text).into_iter().collect()
    },
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: validate_status,
    }],
    counts_generations: true,
    columns: &[
        NAME,
        Column::new("Class", "string", "The IngressClass."),
        Column::new("Hosts", "string", "The hosts of its rules."),
        Column::new("Address", "string", "The addresses of its load balancer."),
        Column::new("Ports", "string", "The ports that it listens on."),
        AGE,
    ],
    cells: |object, now| {
        let class = value(object, &["spec", "ingressClassName"]).and_then(Value::as_str);
        let balancer = items(object, &["status", "loadBalancer", "ingress"]);
        let ports = if items(object, &["spec", "tls"]).is_empty() { "80" } else { "80, 443" };
        vec![
            name(object),
            class.unwrap_or("<none>").into(),
            hosts(items(object, &["spec", "rules"])).into(),
            balancer_addresses(balancer).collect::<Vec<_>>().join(",").into(),
            ports.into(),
            age(object, now),
        ]
    },
    ..KindRules::PLAIN
};

fn annotation(object: &Object) -> Option<&str> {
    value(object, &["metadata", "annotations", CLASS_ANNOTATION]).and_then(Value::as_str)
}

/// The first hosts, and the number of further rules.
fn hosts(rules: &[Value]) -> String {
    const SHOWN: usize = 3;
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        let host = text_in(rule, "host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN),
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (rules, backend) = (items(object, &["spec", "rules"]), value(object, &["spec", "defaultBackend"]));
    if rules.is_empty() && backend.is_none() {
        let problem = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", Value::Null, problem));
    }
    if let Some(backend) = backend {
        errors.extend(bad_backend(&Path::root("spec.defaultBackend"), backend));
    }
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(bad_rule(&Path::SPEC.item("rules", index), rule));
    }
    for (index, tls) in items(object, &["spec", "tls"]).iter().enumerate() {
        let path = Path::SPEC.item("tls", index);
        for (index, host) in items_in(tls, "hosts").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            errors.extend(bad_host(&path.item("hosts", index), host));
        }
        let secret = text_in(tls, "secretName");
        if !secret.is_empty() {
            errors.extend(invalid_for(&path.field("secretName"), secret, dns1123_subdomain(secret)));
        }
    }
    if let Some(class) = value(object, &["spec", "ingressClassName"]).and_then(Value::as_str) {
        errors.extend(invalid_for(&Path::root("spec.ingressClassName"), class, dns1123_subdomain(class)));
    }
    errors
}

fn bad_host(path: &Path<'_>, host: &str) -> Vec<FieldError> {
    let problems = if host.contains('*') { wildcard_subdomain(host) } else { dns1123_subdomain(host) };
    invalid_for(path, host, problems)
}

fn bad_rule(path: &Path<'_>, rule: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let host = text_in(rule, "host");
    if !host.is_empty() {
        let path = path.field("host");
        if ip(host).is_some() {
            let problem = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid(path, host, problem));
        }
        errors.extend(bad_host(&path, host));
    }
    let Some(http) = rule.get("http") else { return errors };
    let paths = items_in(http, "paths");
    if paths.is_empty() {
        errors.push(FieldError::required(path.field("http.paths"), ""));
    }
    for (index, http_path) in paths.iter().enumerate() {
        errors.extend(bad_path(&path.item("http.paths", index), http_path));
    }
    errors
}

fn bad_path(path: &Path<'_>, rule: &Value) -> Vec<FieldError> {
    let Some(kind) = rule.get("pathType").and_then(Value::as_str) else {
        return vec![FieldError::required(path.field("pathType"), "pathType must be specified")];
    };
    let (field, text) = (path.field("path"), text_in(rule, "path"));
    let mut problems = Vec::new();
    let relative = !text.starts_with('/') && (kind != "ImplementationSpecific" || !text.is_empty());
    if PATH_TYPES.contains(&kind) && relative {
        problems.push("must be an absolute path".to_owned());
    }
    if matches!(kind, "Exact" | "Prefix") {
        let sequences = SEQUENCES.iter().filter(|sequence| text.contains(**sequence));
        problems.extend(sequences.map(|sequence| format!("must not contain '{sequence}'")));
        let suffixes = SUFFIXES.iter().filter(|suffix| text.ends_with(**suffix));
        problems.extend(suffixes.map(|suffix| format!("cannot end with '{suffix}'")));
    }
    let mut errors = invalid_for(&field, text, problems);
    if !PATH_TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(path.field("pathType"), kind, &PATH_TYPES));
    }
    let backend = rule.get("backend").unwrap_or(&Value::Null);
    errors.extend(bad_backend(&path.field("backend"), backend));
    errors
}

fn bad_backend(path: &Path<'_>, backend: &Value) -> Vec<FieldError> {
    match (backend.get("resource"), backend.get("service")) {
        (Some(_), Some(_)) => {
            vec![FieldError::invalid(path, "", "cannot set both resource and service backends")]
        }
        (Some(resource), None) => bad_reference(&path.field("resource"), resource),
        (None, Some(service)) => bad_service(path, service),
        (None, None) => vec![FieldError::invalid(path, "", "resource or service backend is required")],
    }
}

fn bad_service(path: &Path<'_>, service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name_path = path.field("service.name");
    match text_in(service, "name") {
        "" => errors.push(FieldError::required(name_path, "")),
        name => errors.extend(invalid_for(&name_path, name, dns1035_label(name))),
    }
    let port = service.get("port").unwrap_or(&Value::Null);
    let number = port.get("number").and_then(Value::as_i64).unwrap_or_default();
    match (text_in(port, "name"), number) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", number) => errors.extend(bad_port(&path.field("service.port.number"), number)),
        (name, 0) => errors.extend(bad_port_name(&path.field("service.port.name"), name)),
        _ => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
    }
    errors
}

fn validate_status(new: &Object, old: &Object) -> Vec<FieldError> {
    let addresses = |object| items(object, &["status", "loadBalancer", "ingress"]);
    let known: Vec<Value> = addresses(old).iter().filter_map(|known| known.get("ip").cloned()).collect();
    let mut errors = Vec::new();
    for (index, ingress) in addresses(new).iter().enumerate() {
        let path = Path::STATUS.item("loadBalancer.ingress", index);
        let address = text_in(ingress, "ip");
        if !address.is_empty() {
            errors.extend(bad_ip(&path.field("ip"), address, &known));
        }
        errors.extend(balancer_host(&path, text_in(ingress, "hostname")));
    }
    errors
}
