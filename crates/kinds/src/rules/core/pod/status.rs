//! Status updates of Pods.

use model::Object;
use model::address::{bad_ip, ip};
use model::error::{FieldError, Path};
use model::names::{dns1123_subdomain, qualified_name};
use model::object::{copy, items, map_mut, number, text};
use serde_json::Value;

use super::fields::{Errors, invalid, object, objects, set_number};
use super::go;

const SYSTEM_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
const STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
/// Fields whose feature gates are off.
const DROPPED: [&str; 3] = ["allocatedResources", "extendedResourceClaimStatus", "resources"];
const IDS: std::ops::RangeInclusive<i64> = 0..=2_147_483_647;

/// Restores spec, owners, deletion timestamp and fields that kubelets do not know from the old Pod.
pub fn prepare(new: &mut Object, old: &Object) {
    copy(new, old, "spec");
    if let (Some(Value::Object(new)), Some(old)) = (new.get_mut("metadata"), object(old, "metadata")) {
        copy(new, old, "ownerReferences");
        copy(new, old, "deletionTimestamp");
    }
    let (class, generation) =
        (text(old, &["status", "qosClass"]), number(old, &["status", "observedGeneration"]));
    let status = map_mut(new, "status");
    if text(status, &["qosClass"]).is_empty() && !class.is_empty() {
        status.insert("qosClass".to_owned(), class.into());
    }
    if number(status, &["observedGeneration"]) == 0 && generation != 0 {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    drop_disabled(status);
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        let kind = text(condition, &["type"]).to_owned();
        let before = object(old, "status")
            .into_iter()
            .flat_map(|status| objects(status, "conditions"))
            .find(|(_, condition)| text(condition, &["type"]) == kind)
            .map_or(0, |(_, condition)| number(condition, &["observedGeneration"]));
        if before != 0 && number(condition, &["observedGeneration"]) == 0 {
            condition.insert("observedGeneration".to_owned(), before.into());
        }
    }
}

fn drop_disabled(status: &mut Object) {
    for field in DROPPED {
        status.remove(field);
    }
    for field in STATUSES {
        let containers = status.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            container.remove("allocatedResourcesStatus");
        }
    }
}

/// Validates a status update.
pub fn validate(new: &Object, old: &Object) -> Errors {
    let (mut errors, empty) = (Errors::new(), Object::new());
    let (status, before) = (object(new, "status").unwrap_or(&empty), object(old, "status").unwrap_or(&empty));
    let spec = object(old, "spec").unwrap_or(&empty);
    for (index, condition) in objects(status, "conditions") {
        let kind = text(condition, &["type"]);
        if let Some(generation) = set_number(condition, "observedGeneration").filter(|number| *number < 0) {
            let path = Path::STATUS.item("conditions", index);
            errors.push(FieldError::invalid(
                path.field("observedGeneration"),
                generation,
                "must be a non-negative integer",
            ));
        }
        if !SYSTEM_CONDITIONS.contains(&kind) {
            invalid(
                &mut errors,
                &Path::STATUS.item("conditions", index).field("Type"),
                kind,
                qualified_name(kind),
            );
        }
    }
    let nominated = text(status, &["nominatedNodeName"]);
    if !nominated.is_empty() && nominated != text(before, &["nominatedNodeName"]) {
        invalid(
            &mut errors,
            &Path::root("status.nominatedNodeName"),
            nominated,
            dns1123_subdomain(nominated),
        );
        if !text(spec, &["nodeName"]).is_empty() {
            let rule = "may not be set on pods that are already bound to a node";
            errors.push(FieldError::forbidden("status.nominatedNodeName", rule));
        }
    }
    if number(status, &["observedGeneration"]) < 0 {
        let generation = number(status, &["observedGeneration"]);
        errors.push(FieldError::invalid(
            "status.observedGeneration",
            generation,
            "must be a non-negative integer",
        ));
    }
    let class = text(status, &["qosClass"]);
    if class != text(before, &["qosClass"]) {
        errors.push(FieldError::invalid("status.qosClass", class, "field is immutable"));
    }
    for (field, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        check_ends(&mut errors, status, before, spec, field, containers);
    }
    check_claims(&mut errors, status, spec);
    check_addresses(&mut errors, status, before);
    for field in STATUSES {
        check_users(&mut errors, status, field);
    }
    errors
}

/// Validates the statuses of resource claims: known and unique.
fn check_claims(errors: &mut Errors, status: &Object, spec: &Object) {
    let mut known = Vec::new();
    for (index, claim) in objects(status, "resourceClaimStatuses") {
        let (list, name) = (Path::STATUS.item("resourceClaimStatuses", index), text(claim, &["name"]));
        let path = list.field("name");
        if !objects(spec, "resourceClaims").any(|(_, asked)| text(asked, &["name"]) == name) {
            let rule = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(path, name, rule));
        }
        if known.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        } else {
            known.push(name);
        }
        if let Some(made) = claim.get("resourceClaimName").and_then(Value::as_str) {
            invalid(errors, &path, made, dns1123_subdomain(made));
        }
    }
}

/// Validates the user and group IDs of containers.
fn check_users(errors: &mut Errors, status: &Object, field: &str) {
    let bad = |id: i64| !IDS.contains(&id);
    let rule = || format!("must be between {} and {}, inclusive", IDS.start(), IDS.end());
    for (index, container) in objects(status, field) {
        let Some(user) = object(container, "user").and_then(|user| object(user, "linux")) else { continue };
        let container_path = Path::STATUS.item(field, index);
        let path = container_path.field("user.linux");
        for id in ["uid", "gid"] {
            if let Some(number) = set_number(user, id).filter(|number| bad(*number)) {
                errors.push(FieldError::invalid(path.field(id), number, rule()));
            }
        }
        for (index, group) in items(user, &["supplementalGroups"]).iter().enumerate() {
            if let Some(number) = group.as_i64().filter(|number| bad(*number)) {
                errors.push(FieldError::invalid(path.item("supplementalGroups", index), number, rule()));
            }
        }
    }
}

/// A terminated container stays so unless it is to be restarted.
fn check_ends(
    errors: &mut Errors,
    status: &Object,
    before: &Object,
    spec: &Object,
    field: &str,
    containers: &str,
) {
    let terminated =
        |status: &Object| object(status, "state").and_then(|state| object(state, "terminated")).cloned();
    for (index, old) in objects(before, field) {
        let Some(end) = terminated(old) else { continue };
        let name = text(old, &["name"]);
        let Some((_, new)) = objects(status, field).find(|(_, new)| text(new, &["name"]) == name) else {
            continue;
        };
        let container = objects(spec, containers).find(|(_, container)| text(container, &["name"]) == name);
        let restarts =
            container.is_some_and(|(_, container)| restarts(container, spec, number(&end, &["exitCode"])));
        if terminated(new).is_none() && !restarts {
            let path = Path::STATUS.item(field, index);
            errors.push(FieldError::forbidden(
                path.field("state"),
                "may not be transitioned to non-terminated state",
            ));
        }
    }
}

fn restarts(container: &Object, spec: &Object, code: i64) -> bool {
    for (_, rule) in objects(container, "restartPolicyRules") {
        let Some(codes) = object(rule, "exitCodes") else { continue };
        let listed = items(codes, &["values"]).iter().any(|value| value.as_i64() == Some(code));
        if listed == (text(codes, &["operator"]) == "In") {
            return true;
        }
    }
    let policy = match text(container, &["restartPolicy"]) {
        "" => text(spec, &["restartPolicy"]),
        policy => policy,
    };
    policy == "Always" || (policy == "OnFailure" && code != 0)
}

fn check_addresses(errors: &mut Errors, status: &Object, before: &Object) {
    for (field, first) in [("podIPs", None), ("hostIPs", Some("hostIP"))] {
        let addresses: Vec<&str> = objects(status, field).map(|(_, ip)| text(ip, &["ip"])).collect();
        if let (Some(one), Some(first)) = (addresses.first(), first)
            && *one != text(status, &[first])
        {
            errors.push(FieldError::invalid(
                Path::STATUS.item(field, 0).field("ip"),
                *one,
                "must be equal to `hostIP`",
            ));
        }
        for (index, address) in addresses.iter().enumerate() {
            if !objects(before, field).any(|(_, old)| text(old, &["ip"]) == *address) {
                errors.extend(bad_ip(&Path::STATUS.item(field, index), address, &[]));
            }
        }
        if addresses.len() < 2 {
            continue;
        }
        let path = Path::STATUS.field(field);
        if let Some(bad) = addresses.iter().position(|address| ip(address).is_none()) {
            let problem =
                format!("failed to check for dual stack with error:invalid IP[{bad}]: {}", addresses[bad]);
            errors.push(FieldError::internal(path, problem));
        }
        let is_pair = match addresses.as_slice() {
            [one, other] => {
                ip(one).zip(ip(other)).is_some_and(|(one, other)| one.is_ipv4() != other.is_ipv4())
            }
            _ => false,
        };
        if !is_pair {
            let rule = "may specify no more than one IP for each IP family";
            errors.push(go::invalid(&path, status.get(field), &go::ADDRESSES, rule));
        }
    }
}
