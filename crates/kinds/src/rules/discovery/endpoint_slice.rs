//! EndpointSlice.

use std::collections::BTreeSet;

use model::Object;
use model::address::{bad_destination, bad_ip, ip_warning, is_ipv6, strict_ip};
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain, label_value, qualified_name};
use model::object::{entries, has, items, items_in, map_mut, number, set_default, text, text_in, value};
use serde_json::Value;

use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name, some_of};
use crate::rules::common::{bad_labels, immutable, invalid_for, unsupported};
use crate::rules::core::PROTOCOLS;

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;

/// Controllers with trusted addresses, about which no warnings are computed.
const CONTROLLERS: [&str; 2] =
    ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

pub(super) const RULES: KindRules = KindRules {
    group: "discovery.k8s.io",
    kind: "EndpointSlice",
    default: |object| {
        for port in object.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(port) = port {
                set_default(port, "name", "");
                set_default(port, "protocol", "TCP");
            }
        }
    },
    prepare_create: drop_topology,
    prepare_update: |new, old| {
        if value(new, &["metadata", "labels"]) != value(old, &["metadata", "labels"]) {
            let next = number(old, &["metadata", "generation"]) + 1;
            map_mut(new, "metadata").insert("generation".to_owned(), next.into());
        }
        if new.get("endpoints") != old.get("endpoints") {
            drop_topology(new);
        }
    },
    validate_create: |object| {
        let mut errors = bad_type_and_ports(object);
        errors.extend(bad_endpoints(object));
        errors
    },
    validate_update: |new, old| {
        let mut errors = bad_type_and_ports(new);
        if new.get("endpoints") != old.get("endpoints") {
            errors.extend(bad_endpoints(new));
        }
        errors.extend(immutable(new, old, "addressType"));
        errors
    },
    warnings,
    counts_generations: true,
    columns: &[
        NAME,
        Column::new("AddressType", "string", "The type of its addresses."),
        Column::new("Ports", "string", "The ports of all its endpoints."),
        Column::new("Endpoints", "string", "The addresses of its endpoints."),
        AGE,
    ],
    cells: |object, now| {
        let ports = items(object, &["ports"]).iter().map(|port| match port.get("port") {
            Some(number) => number.to_string(),
            None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
        });
        let endpoints = items(object, &["endpoints"]).iter();
        let addresses = endpoints.flat_map(|endpoint| items_in(endpoint, "addresses"));
        let addresses = addresses.filter_map(Value::as_str).map(str::to_owned);
        vec![
            name(object),
            text(object, &["addressType"]).into(),
            some_of(ports, "<unset>"),
            some_of(addresses, "<unset>"),
            age(object, now),
        ]
    },
    ..KindRules::PLAIN
};

/// Drops the labels of nodes that `v1beta1` had.
fn drop_topology(object: &mut Object) {
    for endpoint in object.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(endpoint) = endpoint {
            endpoint.remove("deprecatedTopology");
        }
    }
}

fn bad_type_and_ports(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match text(object, &["addressType"]) {
        "" => errors.push(FieldError::required("addressType", "")),
        kind => errors.extend(unsupported(&Path::root("addressType"), kind, &ADDRESS_TYPES)),
    }
    let ports = items(object, &["ports"]);
    if ports.len() > PORTS_MAX {
        errors.push(FieldError::too_many("ports", ports.len(), PORTS_MAX));
        return errors;
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = Path::OBJECT.item("ports", index);
        let name = text_in(port, "name");
        let name_path = path.field("name");
        if !name.is_empty() {
            errors.extend(invalid_for(&name_path, name, dns1123_label(name)));
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(name_path, name));
        }
        errors.extend(unsupported(&path.field("protocol"), text_in(port, "protocol"), &PROTOCOLS));
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            errors.extend(invalid_for(&path.field("appProtocol"), protocol, qualified_name(protocol)));
        }
    }
    errors
}

fn bad_endpoints(object: &Object) -> Vec<FieldError> {
    let endpoints = items(object, &["endpoints"]);
    if endpoints.len() > ENDPOINTS_MAX {
        return vec![FieldError::too_many("endpoints", endpoints.len(), ENDPOINTS_MAX)];
    }
    let kind = text(object, &["addressType"]);
    let each = endpoints.iter().enumerate();
    each.flat_map(|(index, endpoint)| bad_endpoint(&Path::OBJECT.item("endpoints", index), endpoint, kind))
        .collect()
}

fn bad_endpoint(path: &Path<'_>, endpoint: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (list, addresses) = (path.field("addresses"), items_in(endpoint, "addresses"));
    if addresses.is_empty() {
        errors.push(FieldError::required(list, "must contain at least 1 address"));
    } else if addresses.len() > ADDRESSES_MAX {
        errors.push(FieldError::too_many(list, addresses.len(), ADDRESSES_MAX));
    }
    for (index, address) in addresses.iter().enumerate() {
        errors.extend(bad_address(&list, index, address.as_str().unwrap_or_default(), kind));
    }
    if let Some(node) = endpoint.get("nodeName").and_then(Value::as_str) {
        errors.extend(invalid_for(&path.field("nodeName"), node, dns1123_subdomain(node)));
    }
    let Value::Object(fields) = endpoint else { return errors };
    let topology = path.field("deprecatedTopology");
    errors.extend(bad_labels(&topology, entries(fields, &["deprecatedTopology"])));
    if let Some(host) = endpoint.get("hostname").and_then(Value::as_str) {
        errors.extend(invalid_for(&path.field("hostname"), host, dns1123_label(host)));
    }
    if has(fields, &["hints"]) {
        for (field, rule) in
            [("forZones", label_value as fn(&str) -> Vec<String>), ("forNodes", dns1123_subdomain)]
        {
            errors.extend(bad_hints(
                &path.field("hints").field(field),
                items(fields, &["hints", field]),
                rule,
            ));
        }
    }
    errors
}

fn bad_hints(path: &Path<'_>, hints: &[Value], rule: fn(&str) -> Vec<String>) -> Vec<FieldError> {
    if hints.len() > HINTS_MAX {
        return vec![FieldError::too_many(path, hints.len(), HINTS_MAX)];
    }
    let (mut names, mut errors) = (BTreeSet::new(), Vec::new());
    for (index, hint) in hints.iter().enumerate() {
        let path = path.at(index);
        let (path, name) = (path.field("name"), text_in(hint, "name"));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path, name));
        }
        errors.extend(invalid_for(&path, name, rule(name)));
    }
    errors
}

fn bad_address(list: &Path<'_>, index: usize, address: &str, kind: &str) -> Vec<FieldError> {
    let path = list.at(index);
    let malformed = match kind {
        "IPv4" => bad_ip(&path, address, &[]).into_iter().collect(),
        "IPv6" => invalid_for(&path, address, strict_ip(address)),
        "FQDN" => return bad_domain(&path, address),
        _ => return Vec::new(),
    };
    if !malformed.is_empty() {
        return malformed;
    }
    let mut errors = Vec::new();
    if is_ipv6(address) != (kind == "IPv6") {
        errors.push(FieldError::invalid(list, address, format!("must be an {kind} address")));
    }
    errors.extend(bad_destination(&path, address));
    errors
}

fn bad_domain(path: &Path<'_>, domain: &str) -> Vec<FieldError> {
    if domain.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let wrong =
        |value: &str, problems: Vec<String>| vec![FieldError::invalid(path, value, problems.join(","))];
    let problems = dns1123_subdomain(domain);
    if !problems.is_empty() {
        return wrong(domain, problems);
    }
    if !domain.contains('.') {
        let problem = "should be a domain with at least two segments separated by dots".to_owned();
        return wrong(domain, vec![problem]);
    }
    let bad = domain.split('.').map(|label| (label, dns1123_label(label))).find(|(_, bad)| !bad.is_empty());
    bad.map(|(label, problems)| wrong(label, problems)).unwrap_or_default()
}

fn warnings(object: &Object, old: Option<&Object>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() && text(object, &["addressType"]) == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = text(object, &["metadata", "labels", "endpointslice.kubernetes.io/managed-by"]);
    if CONTROLLERS.contains(&manager) {
        return warnings;
    }
    for (i, endpoint) in items(object, &["endpoints"]).iter().enumerate() {
        let addresses = items_in(endpoint, "addresses").iter().filter_map(Value::as_str).enumerate();
        warnings.extend(addresses.filter_map(|(j, address)| {
            ip_warning(&Path::OBJECT.item("endpoints", i).item("addresses", j), address)
        }));
    }
    warnings
}
