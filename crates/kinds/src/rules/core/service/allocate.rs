//! Allocation of cluster IPs and node ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use model::Object;
use model::address::ip;
use model::error::{FieldError, Path};
use model::object::{is_true, items, map_mut, number, text, text_in, value};
use serde_json::Value;

use super::addresses::{keeps_prefer_dual_stack, set_families};
use super::{NONE, cluster_ips, is_external_name, kind, needs_health_check, node_port, ports};
use crate::rules::claims::{Claim, Pool, Refusal};

/// The claims of a valid Service; before allocation, the ones that it requests.
pub(super) fn claims(service: &Object) -> BTreeSet<Claim> {
    let one = text(service, &["spec", "clusterIP"]);
    let addresses = cluster_ips(service).iter().filter_map(Value::as_str).chain([one]).filter_map(ip);
    let addresses = addresses.filter_map(|ip| match ip {
        IpAddr::V4(ip) => Some(Claim::ClusterIp(ip)),
        IpAddr::V6(_) => None,
    });
    let health = needs_health_check(service).then(|| number(service, &["spec", "healthCheckNodePort"]));
    let numbers = ports(service).iter().map(node_port).chain(health).filter(|port| *port != 0);
    let numbers = numbers.filter_map(|port| u16::try_from(port).ok()).map(Claim::NodePort);
    addresses.chain(numbers).collect()
}

/// Allocates the values of a Service; `old` is `None` on create.
pub(super) fn allocate(
    service: &mut Object,
    old: Option<&Object>,
    pool: &mut Pool<'_>,
) -> Result<(), Refusal> {
    match old {
        None => {
            default_cluster_ips(service);
            set_families(service, None).map_err(Refusal::Invalid)?;
            allocate_address(service, pool)?;
            if takes_node_ports(service) {
                first_node_ports(service, pool)?;
            }
        }
        Some(old) => {
            keep_allocated(service, old);
            sync_cluster_ips(service, old);
            set_families(service, Some(old)).map_err(Refusal::Invalid)?;
            if is_external_name(old) && !keeps_prefer_dual_stack(service, Some(old)) {
                allocate_address(service, pool)?;
            }
            if takes_node_ports(service) {
                more_node_ports(service, old, pool)?;
            }
        }
    }
    if needs_health_check(service) && !old.is_some_and(needs_health_check) {
        allocate_health_port(service, pool).map_err(Refusal::Internal)?;
    }
    Ok(())
}

fn takes_node_ports(service: &Object) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

/// Whether node ports are allocated for it.
fn wants_node_ports(service: &Object) -> bool {
    match kind(service) {
        "NodePort" => true,
        "LoadBalancer" => is_true(service, &["spec", "allocateLoadBalancerNodePorts"]),
        _ => false,
    }
}

fn set_ips(service: &mut Object, ips: Vec<Value>) {
    let spec = map_mut(service, "spec");
    if ips.is_empty() {
        spec.remove("clusterIPs");
    } else {
        spec.insert("clusterIPs".to_owned(), ips.into());
    }
}

/// Sets `clusterIPs` from the `clusterIP` of older clients.
fn default_cluster_ips(service: &mut Object) {
    let ip = text(service, &["spec", "clusterIP"]);
    if !ip.is_empty() && cluster_ips(service).is_empty() {
        let ips = vec![ip.into()];
        set_ips(service, ips);
    }
}

/// Applies a change of `clusterIP` by an older client to `clusterIPs`.
fn sync_cluster_ips(service: &mut Object, old: &Object) {
    let (was, is) = (text(old, &["spec", "clusterIP"]), text(service, &["spec", "clusterIP"]));
    if was == is {
        if cluster_ips(service).is_empty() && !cluster_ips(old).is_empty() {
            set_ips(service, cluster_ips(old).to_vec());
        }
    } else if cluster_ips(service) == cluster_ips(old) {
        let ips = if is.is_empty() { Vec::new() } else { vec![is.into()] };
        set_ips(service, ips);
    }
}

fn allocate_address(service: &mut Object, pool: &mut Pool<'_>) -> Result<(), Refusal> {
    if is_external_name(service) || cluster_ips(service).first().is_some_and(|ip| ip == NONE) {
        return Ok(());
    }
    let Some(wanted) = cluster_ips(service).first().and_then(Value::as_str) else {
        let full = || Refusal::Internal("failed to allocate a serviceIP: range is full".to_owned());
        let address = pool.next_address().ok_or_else(full)?.to_string();
        map_mut(service, "spec").insert("clusterIP".to_owned(), address.as_str().into());
        set_ips(service, vec![address.into()]);
        return Ok(());
    };
    let taken = match ip(wanted) {
        Some(IpAddr::V4(address)) => pool.take_address(address),
        _ => Ok(()),
    };
    taken.map_err(|problem| {
        let problem = format!("failed to allocate IP {wanted}: {problem}");
        let ips = Value::Array(cluster_ips(service).to_vec());
        Refusal::Invalid(vec![FieldError::invalid("spec.clusterIPs", ips, problem)])
    })
}

fn set_node_port(service: &mut Object, index: usize, number: i64) {
    let ports = map_mut(service, "spec").get_mut("ports").and_then(Value::as_array_mut);
    if let Some(Value::Object(port)) = ports.and_then(|ports| ports.get_mut(index)) {
        port.insert("nodePort".to_owned(), number.into());
    }
}

fn take(pool: &mut Pool<'_>, index: usize, number: i64) -> Result<(), Refusal> {
    pool.take_port(number).map_err(|problem| {
        let path = Path::SPEC.item("ports", index);
        Refusal::Invalid(vec![FieldError::invalid(path.field("nodePort"), number, problem)])
    })
}

fn any(pool: &mut Pool<'_>) -> Result<i64, Refusal> {
    let port =
        pool.next_port().map_err(|full| Refusal::Internal(format!("failed to allocate a nodePort: {full}")));
    port.map(i64::from)
}

/// Node ports of a new Service: the same port with two protocols gets one node port.
fn first_node_ports(service: &mut Object, pool: &mut Pool<'_>) -> Result<(), Refusal> {
    let all = ports(service).to_vec();
    let number = |port: &Value| port.get("port").and_then(Value::as_i64).unwrap_or_default();
    let mut known: BTreeMap<i64, i64> = BTreeMap::new();
    for (index, port) in all.iter().enumerate() {
        let own = node_port(port);
        if own == 0 && !wants_node_ports(service) {
            continue;
        }
        let chosen = match known.get(&number(port)) {
            Some(chosen) if own == 0 => *chosen,
            Some(chosen) => {
                if own != *chosen {
                    take(pool, index, own)?;
                }
                continue;
            }
            None => {
                let asked = all.iter().filter(|other| number(other) == number(port)).map(node_port);
                let chosen = match asked.into_iter().find(|asked| *asked != 0) {
                    Some(asked) => take(pool, index, asked).map(|()| asked)?,
                    None => any(pool)?,
                };
                known.insert(number(port), chosen);
                chosen
            }
        };
        set_node_port(service, index, chosen);
    }
    Ok(())
}

/// Node ports of an updated Service: existing ones are kept.
fn more_node_ports(service: &mut Object, old: &Object, pool: &mut Pool<'_>) -> Result<(), Refusal> {
    let had: BTreeSet<i64> = ports(old).iter().map(node_port).collect();
    let (mut taken, mut pairs) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports(service).to_vec().iter().enumerate() {
        let mut number = node_port(port);
        if number == 0 && !wants_node_ports(service) {
            continue;
        }
        if number == 0 {
            number = any(pool)?;
            set_node_port(service, index, number);
        } else if !had.contains(&number) && taken.insert(number) {
            take(pool, index, number)?;
        }
        let protocol = text_in(port, "protocol");
        if !pairs.insert((protocol, number)) {
            return Err(Refusal::Internal(format!("duplicate nodePort: {{{protocol} {number}}}")));
        }
    }
    Ok(())
}

fn allocate_health_port(service: &mut Object, pool: &mut Pool<'_>) -> Result<(), String> {
    let wanted = number(service, &["spec", "healthCheckNodePort"]);
    if wanted != 0 {
        return pool.take_port(wanted).map_err(|problem| {
            format!("failed to allocate requested HealthCheck NodePort {wanted}: {problem}")
        });
    }
    let port = pool
        .next_port()
        .map_err(|problem| format!("failed to allocate a HealthCheck NodePort 0: {problem}"))?;
    map_mut(service, "spec").insert("healthCheckNodePort".to_owned(), port.into());
    Ok(())
}

/// Restores allocated values that the client omitted.
fn keep_allocated(service: &mut Object, old: &Object) {
    if !is_external_name(old) && !is_external_name(service) {
        if text(service, &["spec", "clusterIP"]).is_empty()
            && let Some(ip) = value(old, &["spec", "clusterIP"])
        {
            map_mut(service, "spec").insert("clusterIP".to_owned(), ip.clone());
        }
        if cluster_ips(service).is_empty() {
            set_ips(service, cluster_ips(old).to_vec());
        }
    }
    if wants_node_ports(old) && wants_node_ports(service) {
        keep_node_ports(service, old);
    }
    if needs_health_check(old)
        && needs_health_check(service)
        && number(service, &["spec", "healthCheckNodePort"]) == 0
        && let Some(port) = value(old, &["spec", "healthCheckNodePort"])
    {
        map_mut(service, "spec").insert("healthCheckNodePort".to_owned(), port.clone());
    }
}

/// Restores node ports by port name, unless another port has the number.
fn keep_node_ports(service: &mut Object, old: &Object) {
    let now: BTreeSet<i64> = ports(service).iter().map(node_port).collect();
    let by_name: BTreeMap<&str, i64> =
        ports(old).iter().map(|port| (text_in(port, "name"), node_port(port))).collect();
    for (index, port) in items(service, &["spec", "ports"]).to_vec().iter().enumerate() {
        let kept = by_name.get(text_in(port, "name")).copied().unwrap_or_default();
        if node_port(port) == 0 && kept != 0 && !now.contains(&kept) {
            set_node_port(service, index, kept);
        }
    }
}
