//! Validation of a Service.

use std::collections::BTreeSet;

use model::Object;
use model::address::{bad_destination, bad_ip, bad_port, bad_port_or_name, bad_range, ip};
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain, qualified_name};
use model::object::{entries, has, items, number, text, text_in, value};
use serde_json::Value;

use super::{
    addresses, cluster_ips, is_external, is_external_name, is_headless, is_load_balancer, kind,
    needs_health_check, node_port, ports,
};
use crate::rules::common::{bad_labels, invalid_for, unsupported};

pub(in crate::rules) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const ONLY_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

/// Validates a new Service, or an update of `old`.
pub(super) fn validate(service: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = topology_mode(service).into_iter().collect();
    errors.extend(of_its_type(service));
    errors.extend(all_ports(service));
    errors.extend(bad_labels(&Path::root("spec.selector"), entries(service, &["spec", "selector"])));
    errors.extend(affinity(service));
    errors.extend(addresses::validate(service, old));
    let old_ips = old.map(|old| items(old, &["spec", "externalIPs"])).unwrap_or_default();
    for (index, ip) in items(service, &["spec", "externalIPs"]).iter().enumerate() {
        let (path, ip) = (Path::SPEC.item("externalIPs", index), ip.as_str().unwrap_or_default());
        match bad_ip(&path, ip, old_ips) {
            Some(error) => errors.push(error),
            None => errors.extend(bad_destination(&path, ip)),
        }
    }
    errors.extend(unsupported(&Path::root("spec.type"), kind(service), &TYPES));
    errors.extend(duplicate_ports(service));
    errors.extend(source_ranges(service, old));
    let allocates = has(service, &["spec", "allocateLoadBalancerNodePorts"]);
    if allocates && !is_load_balancer(service) {
        errors.push(FieldError::forbidden("spec.allocateLoadBalancerNodePorts", ONLY_BALANCERS));
    }
    errors.extend(balancer_class(service));
    errors.extend(traffic(service));
    errors
}

fn topology_mode(service: &Object) -> Option<FieldError> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let annotation = |key| value(service, &["metadata", "annotations", key]).and_then(Value::as_str);
    let (mode, hints) = (annotation(MODE)?, annotation(HINTS)?);
    (mode != hints).then(|| {
        let problem = format!("must match annotations[{HINTS}] when both are specified");
        FieldError::invalid(Path::METADATA.field("annotations").key(MODE), mode, problem)
    })
}

fn of_its_type(service: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if ports(service).is_empty() && !is_headless(service) && !is_external_name(service) {
        errors.push(FieldError::required("spec.ports", ""));
    }
    match kind(service) {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(service) => {
            let problem = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", "None", problem));
        }
        "ExternalName" => {
            let foreign = [
                ("spec.clusterIPs", !cluster_ips(service).is_empty()),
                ("spec.ipFamilies", !items(service, &["spec", "ipFamilies"]).is_empty()),
                ("spec.ipFamilyPolicy", has(service, &["spec", "ipFamilyPolicy"])),
            ];
            let foreign = foreign.into_iter().filter(|(_, is_set)| *is_set);
            let problem = "may not be set for ExternalName services";
            errors.extend(foreign.map(|(path, _)| FieldError::forbidden(path, problem)));
            let name = text(service, &["spec", "externalName"]);
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.push(FieldError::required("spec.externalName", "")),
                name => errors.extend(invalid_for(
                    &Path::root("spec.externalName"),
                    name,
                    dns1123_subdomain(name),
                )),
            }
        }
        _ => {}
    }
    errors
}

fn all_ports(service: &Object) -> Vec<FieldError> {
    let (all, mut names, mut errors) = (ports(service), BTreeSet::new(), Vec::new());
    for (index, port) in all.iter().enumerate() {
        let path = Path::SPEC.item("ports", index);
        let name = text_in(port, "name");
        if name.is_empty() {
            if all.len() > 1 {
                errors.push(FieldError::required(path.field("name"), ""));
            }
        } else {
            errors.extend(invalid_for(&path.field("name"), name, dns1123_label(name)));
            if !names.insert(name) {
                errors.push(FieldError::duplicate(path.field("name"), name));
            }
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
        errors.extend(bad_port(&path.field("port"), number));
        errors.extend(unsupported(&path.field("protocol"), text_in(port, "protocol"), &PROTOCOLS));
        let target = port.get("targetPort").unwrap_or(&Value::Null);
        errors.extend(bad_port_or_name(&path.field("targetPort"), target));
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            errors.extend(invalid_for(&path.field("appProtocol"), protocol, qualified_name(protocol)));
        }
    }
    errors
}

fn affinity(service: &Object) -> Vec<FieldError> {
    const CONFIG: &str = "spec.sessionAffinityConfig";
    const LONGEST: i64 = 86_400;
    let affinity = text(service, &["spec", "sessionAffinity"]);
    let mut errors: Vec<FieldError> =
        unsupported(&Path::root("spec.sessionAffinity"), affinity, &["ClientIP", "None"])
            .into_iter()
            .collect();
    let config = ["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"];
    if affinity == "ClientIP" {
        let seconds = number(service, &config);
        if !(1..=LONGEST).contains(&seconds) {
            let problem = format!("must be greater than 0 and less than {LONGEST}");
            errors.push(FieldError::invalid(format!("{CONFIG}.clientIP.timeoutSeconds"), seconds, problem));
        }
    }
    errors
}

/// Reports forbidden node ports, and duplicate pairs of protocol and number.
fn duplicate_ports(service: &Object) -> Vec<FieldError> {
    let (all, mut errors) = (ports(service), Vec::new());
    let on_nodes = || all.iter().enumerate().filter(|(_, port)| node_port(port) != 0);
    if kind(service) == "ClusterIP" {
        errors.extend(on_nodes().map(|(index, _)| {
            let problem = "may not be used when `type` is 'ClusterIP'";
            FieldError::forbidden(Path::SPEC.item("ports", index).field("nodePort"), problem)
        }));
    }
    let mut known = BTreeSet::new();
    for (index, port) in on_nodes() {
        if !known.insert((text_in(port, "protocol"), node_port(port))) {
            errors.push(FieldError::duplicate(
                Path::SPEC.item("ports", index).field("nodePort"),
                node_port(port),
            ));
        }
    }
    let mut known = BTreeSet::new();
    for (index, port) in all.iter().enumerate() {
        let (protocol, number) = (text_in(port, "protocol"), port.get("port").and_then(Value::as_i64));
        if !known.insert((protocol, number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\
                 \"NodePort\":0}}",
                number.unwrap_or_default()
            );
            errors.push(FieldError::duplicate(Path::SPEC.item("ports", index), "").showing(&shown));
        }
    }
    errors
}

fn source_ranges(service: &Object, old: Option<&Object>) -> Vec<FieldError> {
    const FIELD: &str = "spec.LoadBalancerSourceRanges";
    const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let mut errors = Vec::new();
    let ranges = items(service, &["spec", "loadBalancerSourceRanges"]);
    let annotation =
        |service| value(service, &["metadata", "annotations", ANNOTATION]).and_then(Value::as_str);
    if !ranges.is_empty() {
        if !is_load_balancer(service) {
            errors.push(FieldError::forbidden(FIELD, ONLY_BALANCERS));
        }
        let old = old.map(|old| items(old, &["spec", "loadBalancerSourceRanges"])).unwrap_or_default();
        for (index, range) in ranges.iter().enumerate() {
            let range = range.as_str().unwrap_or_default().trim();
            errors.extend(bad_range(&Path::root(FIELD).at(index), range, old));
        }
    } else if let Some(ranges) = annotation(service) {
        let annotations = Path::METADATA.field("annotations");
        let path = annotations.key(ANNOTATION);
        if !is_load_balancer(service) {
            errors.push(FieldError::forbidden(path, ONLY_BALANCERS));
        }
        if old.and_then(annotation) != Some(ranges) && !ranges.trim().is_empty() {
            let each = ranges.split(',').filter_map(|range| bad_range(&path, range.trim(), &[]));
            errors.extend(each);
        }
    }
    errors
}

/// Validates the load balancer class; Kubernetes reports it twice on update.
pub(super) fn balancer_class(service: &Object) -> Vec<FieldError> {
    const PATH: &str = "spec.loadBalancerClass";
    let Some(class) = value(service, &["spec", "loadBalancerClass"]).and_then(Value::as_str) else {
        return Vec::new();
    };
    if is_load_balancer(service) {
        invalid_for(&Path::root(PATH), class, qualified_name(class))
    } else {
        vec![FieldError::forbidden(PATH, ONLY_BALANCERS)]
    }
}

fn traffic(service: &Object) -> Vec<FieldError> {
    const EXTERNAL: &str = "spec.externalTrafficPolicy";
    const HEALTH: &str = "spec.healthCheckNodePort";
    let mut errors = Vec::new();
    let policy = text(service, &["spec", "externalTrafficPolicy"]);
    if is_external(service) {
        errors.extend(unsupported(&Path::root(EXTERNAL), policy, &["Cluster", "Local"]));
    } else if !policy.is_empty() {
        let problem = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(EXTERNAL, policy, problem));
    }
    match (needs_health_check(service), number(service, &["spec", "healthCheckNodePort"])) {
        (true, 0) => errors.push(FieldError::required(HEALTH, "")),
        (true, port) => errors.extend(bad_port(&Path::root(HEALTH), port)),
        (false, 0) => {}
        (false, port) => {
            let problem =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(HEALTH, port, problem));
        }
    }
    for (field, supported) in [
        ("internalTrafficPolicy", &["Cluster", "Local"][..]),
        ("trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"][..]),
    ] {
        if let Some(value) = value(service, &["spec", field]).and_then(Value::as_str) {
            errors.extend(unsupported(&Path::SPEC.field(field), value, supported));
        }
    }
    errors
}

/// Validates a status update.
pub(super) fn validate_status(new: &Object, old: &Object) -> Vec<FieldError> {
    const PATH: &str = "status.loadBalancer.ingress";
    let all = items(new, &["status", "loadBalancer", "ingress"]);
    if !is_load_balancer(new) && !all.is_empty() {
        return vec![FieldError::forbidden(PATH, "may only be used when `spec.type` is 'LoadBalancer'")];
    }
    let known: Vec<Value> = items(old, &["status", "loadBalancer", "ingress"])
        .iter()
        .filter_map(|ingress| ingress.get("ip").cloned())
        .collect();
    let each = all.iter().enumerate();
    each.flat_map(|(index, ingress)| balancer_address(&Path::root(PATH).at(index), ingress, &known)).collect()
}

fn balancer_address(path: &Path<'_>, ingress: &Value, known: &[Value]) -> Vec<FieldError> {
    let (address, mode) = (text_in(ingress, "ip"), ingress.get("ipMode").and_then(Value::as_str));
    let mut errors = Vec::new();
    if !address.is_empty() {
        errors.extend(bad_ip(&path.field("ip"), address, known));
    }
    let mode_path = path.field("ipMode");
    match mode {
        None if !address.is_empty() => {
            errors.push(FieldError::required(mode_path, "must be specified when `ip` is set"));
        }
        None => {}
        Some(_) if address.is_empty() => {
            errors.push(FieldError::forbidden(mode_path, "may not be specified when `ip` is not set"));
        }
        Some(mode) => errors.extend(unsupported(&mode_path, mode, &["Proxy", "VIP"])),
    }
    errors.extend(balancer_host(path, text_in(ingress, "hostname")));
    errors
}

/// Validates the host name of a load balancer.
pub(in crate::rules) fn balancer_host(path: &Path<'_>, host: &str) -> Vec<FieldError> {
    if host.is_empty() {
        return Vec::new();
    }
    let path = path.field("hostname");
    let mut errors = invalid_for(&path, host, dns1123_subdomain(host));
    if ip(host).is_some() {
        errors.push(FieldError::invalid(path, host, "must be a DNS name, not an IP address"));
    }
    errors
}
