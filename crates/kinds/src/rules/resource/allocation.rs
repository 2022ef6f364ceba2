//! The status of a ResourceClaim: allocation, consumers, and status of devices.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{has, items, maps, text, value};
use serde_json::Value;

use super::checks::{RequestNames, bad_configuration, bad_driver, bad_label, bad_list, bad_pool, bad_raw};
use super::claim::REQUESTS_MAX;
use super::device_class::CONFIGURATIONS_MAX;
use crate::rules::conditions::bad_conditions;
use crate::rules::core::bad_node_selector;

const RESERVED_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
const CONDITIONS_MAX: usize = 8;
const DATA_LENGTH_MAX: usize = 10 * 1024;
const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];

/// Driver, pool and device.
type DeviceId<'a> = [&'a str; 3];

fn device_id(object: &Object) -> DeviceId<'_> {
    ["driver", "pool", "device"].map(|field| text(object, &[field]))
}

fn allocated(object: &Object) -> BTreeSet<DeviceId<'_>> {
    let results = maps(object, &["status", "allocation", "devices", "results"]);
    results.map(|(_, result)| device_id(result)).collect()
}

/// Drops the status of devices that the claim no longer has.
pub fn drop_gone_devices(new: &mut Object, old: &Object) {
    let kept = allocated(new).into_iter().map(|id| id.map(str::to_owned)).collect::<BTreeSet<_>>();
    let gone: BTreeSet<[String; 3]> =
        allocated(old).into_iter().map(|id| id.map(str::to_owned)).filter(|id| !kept.contains(id)).collect();
    let Some(Value::Object(status)) = new.get_mut("status") else { return };
    let Some(Value::Array(devices)) = status.get_mut("devices") else { return };
    devices.retain(|device| {
        device.as_object().is_none_or(|device| !gone.contains(&device_id(device).map(str::to_owned)))
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

/// Validates a new status.
pub fn bad_status(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(status) = value(new, &["status"]).and_then(Value::as_object) else { return errors };
    let reserved = items(status, &["reservedFor"]);
    errors.extend(bad_list(
        &Path::root("status.reservedFor"),
        reserved,
        RESERVED_MAX,
        Some("uid"),
        |path, user| {
            let missing =
                ["resource", "name", "uid"].into_iter().filter(|field| text(user, &[field]).is_empty());
            missing.map(|field| FieldError::required(path.field(field), "")).collect()
        },
    ));
    errors.extend(bad_devices(new, status));
    if !reserved.is_empty() {
        let added = || reserved.iter().any(|user| !items(old, &["status", "reservedFor"]).contains(user));
        if !has(status, &["allocation"]) {
            let detail = "may not be specified when `allocated` is not set";
            errors.push(FieldError::forbidden("status.reservedFor", detail));
        } else if has(new, &["metadata", "deletionTimestamp"]) && added() {
            let detail =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(FieldError::forbidden("status.reservedFor", detail));
        }
    }
    let before = value(old, &["status", "allocation"]).filter(|allocation| !allocation.is_null());
    match (value(status, &["allocation"]), before) {
        (Some(allocation), Some(before)) if allocation != before => {
            let detail = "field is immutable";
            errors.push(FieldError::invalid("status.allocation", allocation.clone(), detail));
        }
        (Some(Value::Object(allocation)), None) => errors.extend(bad_allocation(new, allocation)),
        _ => {}
    }
    errors
}

fn bad_devices(object: &Object, status: &Object) -> Vec<FieldError> {
    let known = allocated(object);
    let path = Path::root("status.devices");
    let mut errors = bad_list(&path, items(status, &["devices"]), usize::MAX, None, |path, device| {
        let mut errors = bad_driver(&path.field("driver"), text(device, &["driver"]));
        errors.extend(bad_pool(&path.field("pool"), text(device, &["pool"])));
        errors.extend(bad_label(&path.field("device"), text(device, &["device"])));
        let id = device_id(device);
        if !known.contains(&id) {
            let rule = "must be an allocated device in the claim";
            errors.push(FieldError::invalid(path, "", rule).showing(&shown(id)));
        }
        let conditions = items(device, &["conditions"]);
        let conditions_path = path.field("conditions");
        if conditions.len() > CONDITIONS_MAX {
            errors.push(FieldError::too_many(conditions_path, conditions.len(), CONDITIONS_MAX));
        }
        errors.extend(bad_conditions(&conditions_path, conditions));
        let data = value(device, &["data"]).filter(|data| !data.is_null());
        errors.extend(data.and_then(|data| bad_raw(&path.field("data"), Some(data), DATA_LENGTH_MAX)));
        errors
    });
    let mut seen = BTreeSet::new();
    for (index, device) in maps(status, &["devices"]) {
        let id = device_id(device);
        if !seen.insert(id) {
            errors.push(FieldError::duplicate(path.at(index), "").showing(&shown(id)));
        }
    }
    errors
}

/// A device as errors show it.
fn shown([driver, pool, device]: DeviceId<'_>) -> String {
    let [driver, pool, device] = [driver, pool, device].map(|text| Value::from(text).to_string());
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{device},\"ShareID\":\"\"}}")
}

fn bad_allocation(object: &Object, allocation: &Object) -> Vec<FieldError> {
    let Some(devices) = value(object, &["spec", "devices"]).and_then(Value::as_object) else {
        return Vec::new();
    };
    let names = RequestNames::of(devices);
    let path = &Path::root("status.allocation.devices");
    let results = items(allocation, &["devices", "results"]);
    let mut errors = bad_list(&path.field("results"), results, RESULTS_MAX, None, |path, result| {
        let mut errors = names.bad_reference(&path.field("request"), text(result, &["request"]));
        errors.extend(bad_driver(&path.field("driver"), text(result, &["driver"])));
        errors.extend(bad_pool(&path.field("pool"), text(result, &["pool"])));
        errors.extend(bad_label(&path.field("device"), text(result, &["device"])));
        errors
    });
    let configurations = items(allocation, &["devices", "config"]);
    let most = 2 * CONFIGURATIONS_MAX;
    errors.extend(bad_list(&path.field("config"), configurations, most, None, |path, configuration| {
        let source_path = path.field("source");
        let mut errors = match text(configuration, &["source"]) {
            "" => vec![FieldError::required(source_path, "")],
            source if SOURCES.contains(&source) => Vec::new(),
            source => vec![FieldError::not_supported(source_path, source, &SOURCES)],
        };
        errors.extend(names.bad_references(&path.field("requests"), configuration, REQUESTS_MAX));
        errors.extend(bad_configuration(path, configuration));
        errors
    }));
    let selector = value(allocation, &["nodeSelector"]).filter(|selector| !selector.is_null());
    let path = &Path::root("status.allocation.nodeSelector");
    errors.extend(selector.into_iter().flat_map(|selector| bad_node_selector(path, selector)));
    errors
}
