//! Resource requests and limits of containers and Pods.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_label;
use model::object::{entries, map_mut, text};
use serde_json::Value;

use super::fields::{Errors, object, objects};
use crate::rules::core::resource_name::{
    allows_overcommit, bad_container_resource_name, bad_resource_amount, bad_resource_name,
};
use quantity::Quantity;

const HUGE_PAGES: &str = "hugepages-";
/// Rounds the quantities in a field up to thousandths.
pub(in crate::rules) fn round_amounts(of: &mut Object, field: &str) {
    let amounts = of.get_mut(field).and_then(Value::as_object_mut);
    for (_, amount) in amounts.into_iter().flatten() {
        let rounded = match amount.as_str().map(Quantity::respell_resource) {
            Some(Ok(Cow::Owned(rounded))) => rounded,
            _ => continue,
        };
        *amount = rounded.into();
    }
}

/// The quantity of an entry.
fn amount(value: Option<&Value>) -> Option<Quantity> {
    Quantity::parse(value?.as_str()?).ok()
}

/// Whether a resource cannot be overcommitted.
fn is_exact(name: &str) -> bool {
    !allows_overcommit(name)
}

/// Validates the resource name of a container.
fn bad_container_name(errors: &mut Errors, path: &Path<'_>, name: &str) {
    errors.extend(bad_container_resource_name(path, name));
}

fn bad_pod_name(errors: &mut Errors, path: &Path<'_>, name: &str) {
    let problems = bad_resource_name(path, name);
    let is_name = problems.is_empty();
    errors.extend(problems);
    if is_name && !is_pod_level(name) {
        errors.push(FieldError::not_supported(path, name, &["cpu", "hugepages-", "memory"]));
    }
}

fn is_pod_level(name: &str) -> bool {
    ["cpu", "memory"].contains(&name) || name.starts_with(HUGE_PAGES)
}

/// Validates a quantity.
fn bad_amount(errors: &mut Errors, path: &Path<'_>, name: &str, value: &Value) {
    let Some(amount) = amount(Some(value)) else { return };
    errors.extend(bad_resource_amount(path, name, value));
    if let Some(size) = name.strip_prefix(HUGE_PAGES) {
        let fits = match (Quantity::parse(size).ok().and_then(|size| size.whole()), amount.whole()) {
            (Some(size), Some(amount)) => size > 0 && amount % size == 0,
            _ => false,
        };
        if !fits || amount.is_negative() {
            let problem = format!("{} is not positive integer multiple of {name}", amount_text(value));
            errors.push(FieldError::invalid(path, value.clone(), problem));
        }
    }
}

fn amount_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Validates the resources of a container.
pub fn check_container(errors: &mut Errors, resources: &Object, path: &Path<'_>, claims: &[&str]) {
    check(errors, resources, path, claims, bad_container_name);
}

fn check(
    errors: &mut Errors,
    resources: &Object,
    path: &Path<'_>,
    claims: &[&str],
    bad_name: fn(&mut Errors, &Path<'_>, &str),
) {
    let limits = object(resources, "limits");
    let (limits_path, requests_path) = (path.field("limits"), path.field("requests"));
    let (mut has_basic, mut has_huge) = (false, false);
    let mut note = |name: &str| {
        has_basic |= ["cpu", "memory"].contains(&name);
        has_huge |= name.starts_with(HUGE_PAGES);
    };
    for (name, value) in entries(resources, &["limits"]) {
        let path = limits_path.key(name);
        bad_name(errors, &path, name);
        bad_amount(errors, &path, name, value);
        note(name);
    }
    for (name, value) in entries(resources, &["requests"]) {
        let path = requests_path.key(name);
        bad_name(errors, &path, name);
        let mut amounts = Errors::new();
        bad_amount(&mut amounts, &path, name, value);
        // Kubernetes checks the size of huge pages after the comparison with the limit.
        let pages = amounts.iter().position(|error| error.detail.contains("integer multiple of"));
        let pages = pages.map(|at| amounts.split_off(at)).unwrap_or_default();
        errors.extend(amounts);
        bad_request(
            errors,
            &limits_path,
            &requests_path,
            name,
            value,
            limits.and_then(|limits| limits.get(name)),
        );
        errors.extend(pages);
        note(name);
    }
    if has_huge && !has_basic {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    bad_claims(errors, resources, &path.field("claims"), claims);
}

/// Validates a request against its limit.
fn bad_request(
    errors: &mut Errors,
    limits: &Path<'_>,
    requests: &Path<'_>,
    name: &str,
    value: &Value,
    limit: Option<&Value>,
) {
    let (Some(requested), Some(limit)) = (amount(Some(value)), limit) else {
        if is_exact(name) {
            errors.push(FieldError::required(limits, "Limit must be set for non overcommitable resources"));
        }
        return;
    };
    let Some(most) = amount(Some(limit)) else { return };
    let rule = match requested.cmp(&most) {
        std::cmp::Ordering::Equal => return,
        _ if is_exact(name) => "equal to",
        std::cmp::Ordering::Greater => "less than or equal to",
        std::cmp::Ordering::Less => return,
    };
    let problem = format!("must be {rule} {name} limit of {}", amount_text(limit));
    errors.push(FieldError::invalid(requests, value.clone(), problem));
}

fn bad_claims(errors: &mut Errors, resources: &Object, path: &Path<'_>, known: &[&str]) {
    let mut seen: Vec<String> = Vec::new();
    for (index, claim) in objects(resources, "claims") {
        let path = path.at(index);
        let (name, request) = (text(claim, &["name"]), text(claim, &["request"]));
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let mut key = name.to_owned();
        if seen.contains(&key) {
            errors.push(FieldError::duplicate(path, name));
        } else {
            if !request.is_empty() {
                super::fields::invalid(errors, &path.field("request"), request, dns1123_label(request));
                key = format!("{name}/{request}");
            }
            let overlaps = seen.iter().filter(|other| {
                if request.is_empty() {
                    other.split_once('/').is_some_and(|(of, _)| of == name)
                } else {
                    **other == key
                }
            });
            errors.extend(overlaps.map(|_| FieldError::duplicate(path, key.as_str())));
            seen.push(key);
        }
        if !known.contains(&name) {
            let mut error = FieldError::not_found(path, name);
            error.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            let mut names = known.to_vec();
            names.sort_unstable();
            error.detail.push_str(&match names.as_slice() {
                [] => " which is empty".to_owned(),
                names => format!(": {}", names.join(", ")),
            });
            errors.push(error);
        }
    }
}

/// Validates the resources of a whole Pod.
pub fn check_pod(errors: &mut Errors, spec: &Object, path: &Path<'_>, claims: &[&str]) {
    let Some(resources) = object(spec, "resources") else { return };
    let path = path.field("resources");
    if text(spec, &["os", "name"]) == "windows" {
        errors.push(FieldError::forbidden(path, "may not be set for a windows pod"));
        return;
    }
    if resources.contains_key("claims") {
        errors.push(FieldError::forbidden(
            path.field("claims"),
            "claims may not be set for Resources at pod-level",
        ));
    }
    check(errors, resources, &path, claims, bad_pod_name);
    for (field, of) in [("requests", "requests"), ("limits", "limits")] {
        for (name, sum) in aggregate(spec, of) {
            let value = object(resources, field).and_then(|amounts| amounts.get(name));
            let (Some(value), Some(whole)) = (value, amount(value)) else { continue };
            if sum > whole && (of == "requests" || name.starts_with(HUGE_PAGES)) {
                let problem = format!("must be greater than or equal to aggregate container {of} of {sum}");
                errors.push(FieldError::invalid(path.field(field).key(name), value.clone(), problem));
            }
        }
    }
    for (index, container) in objects(spec, "containers") {
        for (name, value) in entries(container, &["resources", "limits"]) {
            let most = object(resources, "limits").and_then(|limits| limits.get(name));
            if let (Some(limit), Some(whole)) = (amount(Some(value)), amount(most))
                && limit > whole
            {
                let shown = most.map(amount_text).unwrap_or_default();
                let problem = format!("must be less than or equal to pod limits of {shown}");
                let path = path.item("containers", index);
                let path = path.key(name);
                errors.push(FieldError::invalid(path.field("limits"), value.clone(), problem));
            }
        }
    }
}

/// The total of a Pod's containers: the sum of those that run together, or the largest init container.
fn aggregate<'a>(spec: &'a Object, field: &str) -> BTreeMap<&'a str, Quantity> {
    let mut sums: BTreeMap<&str, Quantity> = BTreeMap::new();
    let add = |sums: &mut BTreeMap<&'a str, Quantity>, name: &'a str, value: &Value| {
        let Some(value) = amount(Some(value)) else { return };
        let sum = sums.get(name).map_or(value, |sum| sum.plus(&value));
        sums.insert(name, sum);
    };
    for (_, container) in objects(spec, "containers") {
        for (name, value) in entries(container, &["resources", field]) {
            add(&mut sums, name, value);
        }
    }
    let mut sidecars = BTreeMap::new();
    let mut first: BTreeMap<&str, Quantity> = BTreeMap::new();
    for (_, container) in objects(spec, "initContainers") {
        let stays = text(container, &["restartPolicy"]) == "Always";
        let mut needed = sidecars.clone();
        for (name, value) in entries(container, &["resources", field]) {
            if stays {
                add(&mut sums, name, value);
                add(&mut sidecars, name, value);
            }
            add(&mut needed, name, value);
        }
        for (name, value) in if stays { sidecars.clone() } else { needed } {
            let most = first.get(name).map_or(value, |most| value.max(*most));
            first.insert(name, most);
        }
    }
    for (name, value) in first {
        let most = sums.get(name).map_or(value, |sum| value.max(*sum));
        sums.insert(name, most);
    }
    sums
}

/// Defaults of Pod-level resources, from those of the containers.
pub fn default_pod_resources(spec: &mut Object) {
    let Some(resources) = object(spec, "resources") else { return };
    let has = |field: &str| object(resources, field).is_some_and(|amounts| !amounts.is_empty());
    let (has_limits, has_requests) = (has("limits"), has("requests"));
    if !has_limits && !has_requests {
        return;
    }
    let requested =
        |name: &str| object(resources, "requests").is_some_and(|amounts| amounts.contains_key(name));
    let mut limits: Vec<(String, Value)> = aggregate(spec, "limits")
        .into_iter()
        .filter(|(name, _)| name.starts_with(HUGE_PAGES) && !requested(name))
        .map(|(name, amount)| (name.to_owned(), amount.to_string().into()))
        .collect();
    let mut requests: Vec<(String, Value)> = Vec::new();
    if has_limits || !limits.is_empty() {
        let sums = aggregate(spec, "requests").into_iter();
        let shared = sums.filter(|(name, _)| is_pod_level(name) && !is_exact(name));
        requests.extend(shared.map(|(name, amount)| (name.to_owned(), amount.to_string().into())));
        let own = entries(resources, &["limits"]).map(|(name, value)| (name.clone(), value.clone()));
        requests.extend(own.chain(limits.iter().cloned()).filter(|(name, _)| is_pod_level(name)));
    }
    let resources = map_mut(spec, "resources");
    for (field, amounts) in [("limits", std::mem::take(&mut limits)), ("requests", requests)] {
        if !amounts.is_empty() {
            let map = map_mut(resources, field);
            for (name, amount) in amounts {
                map.entry(name).or_insert(amount);
            }
        }
    }
}

/// The QoS class of a Pod.
pub fn quality_of_service(spec: &Object) -> &'static str {
    let basic = ["cpu", "memory"];
    let positive = |of: &Object, field: &str, name: &str| {
        let value = object(of, field).and_then(|amounts| amounts.get(name));
        amount(value).filter(|amount| !amount.is_zero())
    };
    let pod_level = object(spec, "resources").filter(|resources| !resources.is_empty());
    let needs: Vec<Option<&Object>> = match pod_level {
        Some(resources) => vec![Some(resources)],
        None => ["initContainers", "containers"]
            .into_iter()
            .flat_map(|field| objects(spec, field))
            .map(|(_, container)| object(container, "resources"))
            .collect(),
    };
    let any = needs.iter().flatten().any(|resources| {
        basic
            .iter()
            .any(|name| ["limits", "requests"].iter().any(|field| positive(resources, field, name).is_some()))
    });
    let guaranteed = |resources: &Option<&Object>| {
        let Some(resources) = resources else { return false };
        basic.iter().all(|name| {
            let (limit, request) =
                (positive(resources, "limits", name), positive(resources, "requests", name));
            limit.is_some() && (request.is_none() || request == limit)
        })
    };
    match (any, needs.iter().all(guaranteed)) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// The names of the resource claims of a Pod.
pub fn claim_names(spec: &Object) -> Vec<&str> {
    objects(spec, "resourceClaims")
        .map(|(_, claim)| text(claim, &["name"]))
        .filter(|name| !name.is_empty())
        .collect()
}

/// Warns about fractions of bytes.
pub fn fractional_bytes(warnings: &mut Vec<String>, of: &Object, field: &str, path: &Path<'_>, name: &str) {
    let value = object(of, field).and_then(|amounts| amounts.get(name));
    if let Some(value) = value.filter(|value| amount(Some(value)).is_some_and(|amount| !amount.is_whole())) {
        let shown = model::error::quote(amount_text(value));
        warnings.push(format!(
            "{path}.{field}[{name}]: fractional byte value {shown} is invalid, must be an integer"
        ));
    }
}

/// Validates the overhead of a Pod.
pub fn check_overhead(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let path = path.field("overhead.limits");
    for (name, value) in entries(spec, &["overhead"]) {
        let path = path.key(name);
        bad_container_name(errors, &path, name);
        bad_amount(errors, &path, name, value);
    }
}
