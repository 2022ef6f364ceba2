//! Updates of a Service, and fields that depend on its type.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{has, items, map_mut, number, text, value};
use serde_json::{Value, json};

use super::{
    cluster_ips, is_external, is_external_name, is_headless, is_load_balancer, kind, needs_health_check,
    node_port, ports, validate,
};

/// Validates changes.
pub(super) fn validate(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !is_external_name(new) && !is_external_name(old) {
        errors.extend(addresses(new, old));
        errors.extend(families(new, old));
    }
    if is_load_balancer(old) && is_load_balancer(new) {
        let class = |service| value(service, &["spec", "loadBalancerClass"]);
        if class(old) != class(new) {
            let class = class(new).cloned().unwrap_or_default();
            errors.push(FieldError::invalid("spec.loadBalancerClass", class, "may not change once set"));
        }
    }
    errors.extend(validate::balancer_class(new));
    let health = |service| number(service, &["spec", "healthCheckNodePort"]);
    if needs_health_check(old) && needs_health_check(new) && health(old) != health(new) {
        errors.push(FieldError::forbidden("spec.healthCheckNodePort", "field is immutable"));
    }
    errors
}

const CHANGED: &str = "may not change once set";

fn addresses(new: &Object, old: &Object) -> Vec<FieldError> {
    if is_headless(old) && is_headless(new) {
        return Vec::new();
    }
    let (was, is) = (cluster_ips(old), cluster_ips(new));
    let at = |index: usize| Path::SPEC.item("clusterIPs", index);
    let all = || Value::Array(is.to_vec());
    if was.len() == is.len() {
        let pairs = was.iter().zip(is).enumerate().filter(|(_, (was, is))| was != is);
        return pairs.map(|(index, _)| FieldError::invalid(at(index), all(), CHANGED)).collect();
    }
    let mut errors = Vec::new();
    if is.is_empty() {
        errors.push(FieldError::invalid(at(0), Value::Null, "primary clusterIP can not be unset"));
    } else if !was.is_empty() && was[0] != is[0] {
        errors.push(FieldError::invalid(at(0), all(), CHANGED));
    }
    if was.len() > is.len() {
        errors.extend(released(new, is.len(), "secondary clusterIP"));
    }
    errors
}

fn families(new: &Object, old: &Object) -> Vec<FieldError> {
    const FIRST: &str = "spec.ipFamilies[0]";
    if is_headless(old) || is_headless(new) {
        return Vec::new();
    }
    let families = |service| items(service, &["spec", "ipFamilies"]);
    let (was, is) = (families(old), families(new));
    let all = |list: &[Value]| Value::Array(list.to_vec());
    if was.len() == is.len() {
        let changed = was.iter().zip(is).filter(|(was, is)| was != is);
        return changed.map(|_| FieldError::invalid(FIRST, all(is), CHANGED)).collect();
    }
    let mut errors = Vec::new();
    if was.len() > is.len() && cluster_ips(new).is_empty() {
        errors.push(FieldError::invalid(FIRST, all(is), "primary ipFamily can not be unset"));
    }
    if let (Some(was), Some(is)) = (was.first(), is.first())
        && was != is
    {
        errors.push(FieldError::invalid(FIRST, all(cluster_ips(new)), CHANGED));
    }
    if was.len() > is.len() {
        errors.extend(released(new, is.len(), "secondary ipFamily"));
    }
    errors
}

/// The secondary value can be removed only if the policy requires a single one.
fn released(new: &Object, left: usize, what: &str) -> Option<FieldError> {
    let policy = text(new, &["spec", "ipFamilyPolicy"]);
    (left == 1 && policy != "SingleStack").then(|| {
        let problem = format!("must be set to 'SingleStack' when releasing the {what}");
        let policy = value(new, &["spec", "ipFamilyPolicy"]).cloned().unwrap_or_default();
        FieldError::invalid("spec.ipFamilyPolicy", policy, problem)
    })
}

/// Drops server-set values that the new type does not use, unless the client changed them.
pub(super) fn drop_unused_fields(new: &mut Object, old: &Object) {
    let same = |new: &Object, field| value(new, &["spec", field]) == value(old, &["spec", field]);
    let mut gone = Vec::new();
    if !is_external_name(old) && is_external_name(new) {
        if same(new, "clusterIP") && same(new, "clusterIPs") {
            gone.extend(["clusterIP", "clusterIPs"]);
        }
        gone.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|field| same(new, field)));
    }
    if needs_health_check(old) && !needs_health_check(new) && same(new, "healthCheckNodePort") {
        gone.push("healthCheckNodePort");
    }
    if is_load_balancer(old) && !is_load_balancer(new) {
        let fields = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];
        gone.extend(fields.into_iter().filter(|field| has(new, &["spec", field]) && same(new, field)));
    }
    if is_external(old) && !is_external(new) && same(new, "externalTrafficPolicy") {
        gone.push("externalTrafficPolicy");
    }
    let on_nodes = |service: &Object| matches!(kind(service), "NodePort" | "LoadBalancer");
    let known: BTreeSet<i64> = ports(old).iter().map(node_port).collect();
    let wipes = on_nodes(old)
        && !on_nodes(new)
        && ports(new).iter().map(node_port).all(|port| port == 0 || known.contains(&port));
    if !is_load_balancer(new) {
        map_mut(new, "status").insert("loadBalancer".to_owned(), json!({}));
    }
    let spec = map_mut(new, "spec");
    for field in gone {
        spec.remove(field);
    }
    if wipes {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(port) = port {
                port.remove("nodePort");
            }
        }
    }
}
