//! Cluster IPs and IP families of a Service, in a cluster with IPv4 Services only.

use model::Object;
use model::address::{bad_ip, is_ipv6};
use model::error::{FieldError, Path};
use model::object::{entries, has, items, map_mut, text, value};
use serde_json::{Value, json};

use super::{NONE, cluster_ips, is_external_name, is_headless, kind};

const IPS: &str = "spec.clusterIPs";
const FAMILIES: &str = "spec.ipFamilies";
const POLICY: &str = "spec.ipFamilyPolicy";
const SINGLE: &str = "SingleStack";
const REQUIRE_DUAL: &str = "RequireDualStack";
const PREFER_DUAL: &str = "PreferDualStack";
const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";

fn families(service: &Object) -> &[Value] {
    items(service, &["spec", "ipFamilies"])
}

fn policy(service: &Object) -> &str {
    text(service, &["spec", "ipFamilyPolicy"])
}

fn list(values: &[Value]) -> Value {
    Value::Array(values.to_vec())
}

/// Validates addresses, families and policy, independently of the cluster.
pub(super) fn validate(service: &Object, old: Option<&Object>) -> Vec<FieldError> {
    if is_external_name(service) {
        return Vec::new();
    }
    let ips = cluster_ips(service);
    let mut errors = Vec::new();
    match (text(service, &["spec", "clusterIP"]), ips.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            let problem = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(IPS, list(ips), problem));
        }
        (_, None) => errors.push(FieldError::required(IPS, "")),
        (ip, Some(first)) if first != ip => {
            errors.push(FieldError::invalid(IPS, list(ips), "first value must match `clusterIP`"));
        }
        _ => {}
    }
    let own = families(service);
    for (index, family) in own.iter().enumerate() {
        let name = family.as_str().unwrap_or_default();
        if ![IPV4, IPV6].contains(&name) {
            errors.push(FieldError::not_supported(format!("{FAMILIES}[{index}]"), name, &[IPV4, IPV6]));
        }
        if own[..index].contains(family) {
            errors.push(FieldError::duplicate(format!("{FAMILIES}[{index}]"), name));
        }
    }
    let policies = [PREFER_DUAL, REQUIRE_DUAL, SINGLE];
    if has(service, &["spec", "ipFamilyPolicy"]) && !policies.contains(&policy(service)) {
        errors.push(FieldError::not_supported(POLICY, policy(service), &policies));
    }
    let well_formed = errors.len();
    errors.extend(malformed(ips, old.map(cluster_ips).unwrap_or_default()));
    let broken = errors.len() > well_formed;
    if ips.len() > 2 {
        errors.push(FieldError::invalid(IPS, list(ips), "may only hold up to 2 values"));
    }
    if broken {
        return errors;
    }
    let six = |ip: &Value| is_ipv6(ip.as_str().unwrap_or_default());
    if ips.len() > 1 && (ips.iter().all(six) || !ips.iter().any(six)) {
        let problem = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(IPS, list(ips), problem));
    }
    if !is_headless(service) {
        for (index, (ip, family)) in ips.iter().zip(own).enumerate() {
            if (family == IPV4 && six(ip)) || (family == IPV6 && !six(ip)) {
                let family = family.as_str().unwrap_or_default();
                let problem = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
                errors.push(FieldError::invalid(format!("{IPS}[{index}]"), ip.clone(), problem));
            }
        }
    }
    errors
}

fn malformed(ips: &[Value], old: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, ip) in ips.iter().enumerate() {
        let ip = ip.as_str().unwrap_or_default();
        if index > 0 || ip != NONE {
            errors.extend(bad_ip(&Path::root(IPS).at(index), ip, old));
        } else if ips.len() > 1 {
            errors.push(FieldError::invalid(IPS, list(ips), "'None' must be the first and only value"));
        }
    }
    errors
}

/// Whether a Service with `PreferDualStack` keeps its addresses and families.
pub(super) fn keeps_prefer_dual_stack(new: &Object, old: Option<&Object>) -> bool {
    old.is_some_and(|old| {
        has(new, &["spec", "ipFamilyPolicy"])
            && kind(old) == kind(new)
            && matches!(kind(new), "ClusterIP" | "NodePort" | "LoadBalancer")
            && policy(new) == PREFER_DUAL
            && matches!(policy(old), PREFER_DUAL | "")
            && cluster_ips(old) == cluster_ips(new)
            && families(old) == families(new)
    })
}

/// Sets policy and families; an error if the cluster does not support them.
pub(super) fn set_families(service: &mut Object, old: Option<&Object>) -> Result<(), Vec<FieldError>> {
    if is_external_name(service) || keeps_prefer_dual_stack(service, old) {
        return Ok(());
    }
    // A headless Service without selector may have endpoints of any family.
    let open = text(service, &["spec", "clusterIP"]) == NONE
        && entries(service, &["spec", "selector"]).next().is_none();
    if !has(service, &["spec", "ipFamilyPolicy"]) {
        let inherited = old.and_then(|old| value(old, &["spec", "ipFamilyPolicy"])).cloned();
        let policy = inherited.unwrap_or_else(|| if open { REQUIRE_DUAL } else { SINGLE }.into());
        map_mut(service, "spec").insert("ipFamilyPolicy".to_owned(), policy);
    }
    refuse(validate(service, old))?;
    let mut errors = Vec::new();
    if let Some(old) = old {
        errors.extend(shrink(service, old));
    }
    errors.extend(too_many_for_one(service));
    errors.extend(infer(service));
    refuse(errors)?;
    if open {
        let mut own = match families(service) {
            [] => vec![IPV4.into()],
            own => own.to_vec(),
        };
        if own.len() < 2 && policy(service) != SINGLE {
            own.push(if own[0] == IPV4 { IPV6 } else { IPV4 }.into());
        }
        map_mut(service, "spec").insert("ipFamilies".to_owned(), own.into());
        return Ok(());
    }
    refuse(unavailable(service))?;
    if families(service).is_empty() {
        map_mut(service, "spec").insert("ipFamilies".to_owned(), json!([IPV4]));
    }
    Ok(())
}

fn refuse(errors: Vec<FieldError>) -> Result<(), Vec<FieldError>> {
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Drops the second address or family if the policy requires one; anywhere else that is an error.
fn shrink(service: &mut Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (before, now) = (items(old, &["spec", field]), items(service, &["spec", field]));
        if policy(service) != SINGLE {
            if !now.is_empty() && now.len() < before.len() {
                let problem = format!("must be 'SingleStack' to release the secondary {what}");
                errors.push(FieldError::invalid(POLICY, policy(service), problem));
            }
        } else if now == before && now.len() > 1 {
            let first = json!([now[0]]);
            map_mut(service, "spec").insert(field.to_owned(), first);
        }
    }
    errors
}

fn too_many_for_one(service: &Object) -> Vec<FieldError> {
    if policy(service) != SINGLE {
        return Vec::new();
    }
    [(cluster_ips(service), "cluster IPs"), (families(service), "IP families")]
        .into_iter()
        .filter(|(list, _)| list.len() == 2)
        .map(|(_, what)| {
            let problem =
                format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            FieldError::invalid(POLICY, SINGLE, problem)
        })
        .collect()
}

/// Adds missing families of addresses.
fn infer(service: &mut Object) -> Vec<FieldError> {
    let ips = cluster_ips(service).to_vec();
    let (mut own, mut errors) = (families(service).to_vec(), Vec::new());
    for (index, ip) in ips.iter().enumerate() {
        if ip == NONE {
            break;
        }
        if index < own.len() {
            continue;
        }
        if is_ipv6(ip.as_str().unwrap_or_default()) {
            let problem = "IPv6 is not configured on this cluster";
            errors.push(FieldError::invalid(format!("{IPS}[{index}]"), list(&ips), problem));
        } else {
            own.push(IPV4.into());
        }
    }
    if !own.is_empty() {
        map_mut(service, "spec").insert("ipFamilies".to_owned(), own.into());
    }
    errors
}

fn unavailable(service: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if policy(service) == REQUIRE_DUAL {
        let problem = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(POLICY, REQUIRE_DUAL, problem));
    }
    let missing = families(service).iter().enumerate().filter(|(_, family)| *family != IPV4);
    errors.extend(missing.map(|(index, family)| {
        let path = format!("{FAMILIES}[{index}]");
        FieldError::invalid(path, family.clone(), "not configured on this cluster")
    }));
    errors
}
