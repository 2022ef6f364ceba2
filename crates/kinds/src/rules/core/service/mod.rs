//! Service.

mod addresses;
mod allocate;
mod columns;
mod update;
mod validate;

use model::Object;
use model::address::{ip_warning, range_warnings};
use model::error::Path;
use model::names::NameRule;
use model::object::{copy, has, items, map_mut, set_default, text};
use serde_json::{Value, json};

use crate::rules::{KindRules, SelectableField, Subresource};

pub(in crate::rules) use columns::balancer_addresses;
pub(in crate::rules) use validate::{PROTOCOLS, balancer_host};

/// `clusterIP` of a headless Service.
const NONE: &str = "None";

pub(super) const RULES: KindRules = KindRules {
    kind: "Service",
    name: NameRule::Dns1035Label,
    default,
    prepare_create: |object| {
        object.insert("status".to_owned(), json!({"loadBalancer": {}}));
    },
    prepare_update: |new, old| {
        copy(new, old, "status");
        update::drop_unused_fields(new, old);
    },
    canonicalize: |object| {
        if is_external_name(object) {
            map_mut(object, "spec").remove("internalTrafficPolicy");
        }
    },
    validate_create: |object| validate::validate(object, None),
    validate_update: |new, old| {
        let mut errors = update::validate(new, old);
        errors.extend(validate::validate(new, Some(old)));
        errors
    },
    warnings: |object, _| warnings(object),
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| copy(new, old, "spec"),
        validate_update: validate::validate_status,
    }],
    create_on_update: true,
    selectable: &[
        SelectableField {
            path: "spec.clusterIP",
            value: |object| text(object, &["spec", "clusterIP"]).into(),
        },
        SelectableField { path: "spec.type", value: |object| text(object, &["spec", "type"]).into() },
    ],
    allocate: Some(allocate::allocate),
    claims: allocate::claims,
    ends_with: &[("", "endpoints")],
    columns: columns::COLUMNS,
    cells: columns::cells,
    ..KindRules::PLAIN
};

/// The type of a service.
fn kind(service: &Object) -> &str {
    text(service, &["spec", "type"])
}

fn cluster_ips(service: &Object) -> &[Value] {
    items(service, &["spec", "clusterIPs"])
}

fn ports(service: &Object) -> &[Value] {
    items(service, &["spec", "ports"])
}

fn node_port(port: &Value) -> i64 {
    port.get("nodePort").and_then(Value::as_i64).unwrap_or_default()
}

/// Whether it is headless.
fn is_headless(service: &Object) -> bool {
    matches!(cluster_ips(service), [only] if only == NONE)
}

fn is_load_balancer(service: &Object) -> bool {
    kind(service) == "LoadBalancer"
}

fn is_external_name(service: &Object) -> bool {
    kind(service) == "ExternalName"
}

/// Whether it is reachable from outside the cluster.
fn is_external(service: &Object) -> bool {
    match kind(service) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !items(service, &["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}

/// Whether load balancers need a health check per node.
fn needs_health_check(service: &Object) -> bool {
    is_load_balancer(service) && text(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

fn default(service: &mut Object) {
    let spec = map_mut(service, "spec");
    set_default(spec, "sessionAffinity", NONE);
    match text(spec, &["sessionAffinity"]) {
        NONE => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" if !has(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"]) => {
            spec.insert("sessionAffinityConfig".to_owned(), json!({"clientIP": {"timeoutSeconds": 10_800}}));
        }
        _ => {}
    }
    set_default(spec, "type", "ClusterIP");
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Value::Object(port) = port else { continue };
        set_default(port, "protocol", "TCP");
        if port.get("targetPort").is_none_or(|target| *target == 0 || *target == "") {
            let number = port.get("port").cloned().unwrap_or_default();
            port.insert("targetPort".to_owned(), number);
        }
    }
    let kind = text(spec, &["type"]).to_owned();
    let external = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !items(spec, &["externalIPs"]).is_empty());
    if external {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        spec.entry("allocateLoadBalancerNodePorts").or_insert(true.into());
        default_modes(service);
    }
}

/// Sets the default IP mode of load balancer addresses.
fn default_modes(service: &mut Object) {
    let balancer = map_mut(map_mut(service, "status"), "loadBalancer");
    for ingress in balancer.get_mut("ingress").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(ingress) = ingress
            && !text(ingress, &["ip"]).is_empty()
        {
            set_default(ingress, "ipMode", "VIP");
        }
    }
}

fn warnings(service: &Object) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let mut warnings = Vec::new();
    if has(service, &["metadata", "annotations", HINTS]) {
        let use_instead = "service.kubernetes.io/topology-mode";
        warnings.push(format!("annotation {HINTS} is deprecated, please use {use_instead} instead"));
    }
    let spec = |field| text(service, &["spec", field]);
    let at = |field: &str, list: &[Value]| -> Vec<String> {
        let ips = list.iter().filter_map(Value::as_str).enumerate();
        ips.filter_map(|(index, ip)| ip_warning(&Path::SPEC.item(field, index), ip)).collect()
    };
    if !matches!(spec("clusterIP"), "" | NONE) {
        warnings.extend(at("clusterIPs", cluster_ips(service)));
    }
    let external_ips = items(service, &["spec", "externalIPs"]);
    if kind(service) == "ClusterIP" && spec("clusterIP") == NONE {
        let ignored = [
            ("loadBalancerIP", !spec("loadBalancerIP").is_empty()),
            ("externalIPs", !external_ips.is_empty()),
            ("SessionAffinity", spec("sessionAffinity") != NONE),
        ];
        let ignored = ignored.into_iter().filter(|(_, is_set)| *is_set);
        warnings.extend(ignored.map(|(field, _)| format!("spec.{field} is ignored for headless services")));
    }
    warnings.extend(at("externalIPs", external_ips));
    warnings.extend(ip_warning(&Path::root("spec.loadBalancerIP"), spec("loadBalancerIP")));
    for (index, range) in items(service, &["spec", "loadBalancerSourceRanges"]).iter().enumerate() {
        let path = Path::SPEC.item("loadBalancerSourceRanges", index);
        warnings.extend(range_warnings(&path, range.as_str().unwrap_or_default()));
    }
    if is_external_name(service) && !external_ips.is_empty() {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_external_name(service) && !spec("externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec("trafficDistribution") == "PreferClose" {
        warnings.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
    warnings
}
