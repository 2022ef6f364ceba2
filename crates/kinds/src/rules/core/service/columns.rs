//! Printer columns of Service.

use std::collections::BTreeSet;

use model::Object;
use model::object::{items, text, text_in};
use serde_json::Value;

use super::{cluster_ips, kind, node_port, ports};
use crate::rules::columns::{AGE, Column, NAME, age, labels, name, or_none};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    Column::new("Type", "string", "The type of the Service."),
    Column::new("Cluster-IP", "string", "The address inside the cluster."),
    Column::new("External-IP", "string", "The addresses outside the cluster."),
    Column::new("Port(s)", "string", "The ports, with their node ports."),
    AGE,
    Column::new("Selector", "string", "The selector of its pods.").wide(),
];

pub(super) fn cells(service: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let address = cluster_ips(service).first().and_then(Value::as_str).unwrap_or("<none>");
    let numbers: Vec<String> = ports(service).iter().map(port).collect();
    vec![
        name(service),
        kind(service).into(),
        address.into(),
        external(service).into(),
        or_none(numbers.join(",")),
        age(service, now),
        labels(service, &["spec", "selector"]),
    ]
}

fn port(port: &Value) -> String {
    let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
    let protocol = text_in(port, "protocol");
    match node_port(port) {
        0 => format!("{number}/{protocol}"),
        node_port => format!("{number}:{node_port}/{protocol}"),
    }
}

fn external(service: &Object) -> String {
    let own = items(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str);
    let addresses: Vec<&str> = match kind(service) {
        "ExternalName" => return text(service, &["spec", "externalName"]).to_owned(),
        "ClusterIP" | "NodePort" => own.collect(),
        "LoadBalancer" => {
            balancer_addresses(items(service, &["status", "loadBalancer", "ingress"])).chain(own).collect()
        }
        _ => return "<unknown>".to_owned(),
    };
    match (addresses.is_empty(), kind(service)) {
        (false, _) => addresses.join(","),
        (true, "LoadBalancer") => "<pending>".to_owned(),
        (true, _) => "<none>".to_owned(),
    }
}

/// The addresses or host names of a load balancer, unique and in order.
pub(in crate::rules) fn balancer_addresses(ingress: &[Value]) -> impl Iterator<Item = &str> {
    let address = |ingress| match text_in(ingress, "ip") {
        "" => text_in(ingress, "hostname"),
        ip => ip,
    };
    let addresses: BTreeSet<&str> =
        ingress.iter().map(address).filter(|address| !address.is_empty()).collect();
    addresses.into_iter()
}
