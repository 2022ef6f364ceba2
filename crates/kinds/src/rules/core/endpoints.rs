//! Endpoints.

use model::Object;
use model::address::{bad_destination, bad_ip, bad_port, ip_warning, is_ipv6};
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain, qualified_name};
use model::object::{items, items_in, set_default, text, text_in};
use serde_json::Value;

use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name, some_of};
use crate::rules::common::{invalid_for, unsupported};
use crate::rules::core::PROTOCOLS;

/// The address lists of a subset.
const LISTS: [&str; 2] = ["addresses", "notReadyAddresses"];

pub(super) const RULES: KindRules = KindRules {
    kind: "Endpoints",
    default: |object| {
        for subset in object.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten() {
            for port in subset.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Value::Object(port) = port {
                    set_default(port, "protocol", "TCP");
                }
            }
        }
    },
    validate_create: validate,
    validate_update: |new, old| {
        if new.get("subsets") == old.get("subsets") { Vec::new() } else { validate(new) }
    },
    deprecated: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    warnings: |object, _| warnings(object),
    create_on_update: true,
    columns: &[NAME, Column::new("Endpoints", "string", "Addresses and ports of ready endpoints."), AGE],
    cells: |object, now| vec![name(object), shown(object), age(object, now)],
    ..KindRules::PLAIN
};

fn shown(object: &Object) -> Value {
    let subsets = items(object, &["subsets"]);
    if subsets.is_empty() {
        return "<none>".into();
    }
    let pairs = subsets.iter().flat_map(|subset| {
        let addresses = items_in(subset, "addresses");
        let ports = items_in(subset, "ports");
        let alone = ports.is_empty().then_some(addresses).into_iter().flatten();
        let with_ports = ports.iter().flat_map(move |port| {
            let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            addresses.iter().map(move |address| host_and_port(text_in(address, "ip"), number))
        });
        alone.map(|address| text_in(address, "ip").to_owned()).chain(with_ports).collect::<Vec<_>>()
    });
    some_of(pairs, "")
}

fn host_and_port(host: &str, port: i64) -> String {
    if is_ipv6(host) { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let subsets = items(object, &["subsets"]).iter().enumerate();
    subsets.flat_map(|(index, subset)| bad_subset(&Path::OBJECT.item("subsets", index), subset)).collect()
}

fn bad_subset(path: &Path<'_>, subset: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if LISTS.iter().all(|list| items_in(subset, list).is_empty()) {
        errors.push(FieldError::required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
    for list in LISTS {
        for (index, address) in items_in(subset, list).iter().enumerate() {
            errors.extend(bad_address(&path.item(list, index), address));
        }
    }
    let ports = items_in(subset, "ports");
    for (index, port) in ports.iter().enumerate() {
        errors.extend(bad_endpoint_port(&path.item("ports", index), port, ports.len() > 1));
    }
    errors
}

fn bad_address(path: &Path<'_>, address: &Value) -> Vec<FieldError> {
    let (ip_path, ip) = (path.field("ip"), text_in(address, "ip"));
    let mut errors: Vec<FieldError> = bad_ip(&ip_path, ip, &[]).into_iter().collect();
    let host = text_in(address, "hostname");
    if !host.is_empty() {
        errors.extend(invalid_for(&path.field("hostname"), host, dns1123_label(host)));
    }
    if let Some(node) = address.get("nodeName").and_then(Value::as_str) {
        errors.extend(invalid_for(&path.field("nodeName"), node, dns1123_subdomain(node)));
    }
    errors.extend(bad_destination(&ip_path, ip));
    errors
}

fn bad_endpoint_port(path: &Path<'_>, port: &Value, needs_name: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name_path = path.field("name");
    match text_in(port, "name") {
        "" if needs_name => errors.push(FieldError::required(name_path, "")),
        "" => {}
        name => errors.extend(invalid_for(&name_path, name, dns1123_label(name))),
    }
    let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
    errors.extend(bad_port(&path.field("port"), number));
    errors.extend(unsupported(&path.field("protocol"), text_in(port, "protocol"), &PROTOCOLS));
    if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
        errors.extend(invalid_for(&path.field("appProtocol"), protocol, qualified_name(protocol)));
    }
    errors
}

fn warnings(object: &Object) -> Vec<String> {
    const MANAGER: &str = "endpoints.kubernetes.io/managed-by";
    if text(object, &["metadata", "labels", MANAGER]) == "endpoint-controller" {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, subset) in items(object, &["subsets"]).iter().enumerate() {
        for list in LISTS {
            let addresses = items_in(subset, list).iter().enumerate();
            warnings.extend(addresses.filter_map(|(j, address)| {
                ip_warning(&Path::OBJECT.item("subsets", i).item(list, j).field("ip"), text_in(address, "ip"))
            }));
        }
    }
    warnings
}
