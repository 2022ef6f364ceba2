//! Fields that the server sets in a new Pod.

use model::Object;
use model::object::{items, map_mut, text};
use serde_json::{Value, json};

use super::annotations::APP_ARMOR;
use super::fields::object;
use super::resources::quality_of_service;
use super::scheduling::merge_label_keys;
use crate::rules::Writer;

/// Sets the status of a new Pod, and fields that follow from its labels and annotations.
pub fn prepare_create(pod: &mut Object) {
    let empty = Object::new();
    let spec = object(pod, "spec").unwrap_or(&empty);
    let mut status = json!({"phase": "Pending", "qosClass": quality_of_service(spec)});
    if !items(spec, &["schedulingGates"]).is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": null,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.insert("status".to_owned(), status);
    merge_label_keys(pod);
    adopt_app_armor(pod);
}

/// Sets the transition time of the condition of a gated Pod.
pub fn stamp(pod: &mut Object, old: Option<&Object>, writer: &Writer) {
    if old.is_some() {
        return;
    }
    let conditions = map_mut(pod, "status").get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.insert("lastTransitionTime".to_owned(), writer.now.into());
    }
}

/// Copies AppArmor profiles from annotations to fields.
fn adopt_app_armor(pod: &mut Object) {
    let Some(annotations) = object(pod, "metadata").and_then(|metadata| object(metadata, "annotations"))
    else {
        return;
    };
    if !annotations.keys().any(|key| key.starts_with(APP_ARMOR))
        || text(pod, &["spec", "os", "name"]) == "windows"
    {
        return;
    }
    let annotations = annotations.clone();
    let spec = map_mut(pod, "spec");
    let pod_profile =
        object(spec, "securityContext").and_then(|context| context.get("appArmorProfile")).cloned();
    for field in ["initContainers", "containers"] {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let key = format!("{APP_ARMOR}{}", text(container, &["name"]));
            let profile = annotations.get(&key).and_then(Value::as_str).and_then(profile);
            let has = object(container, "securityContext")
                .is_some_and(|context| context.contains_key("appArmorProfile"));
            if let Some(profile) = profile.filter(|profile| !has && Some(profile) != pod_profile.as_ref()) {
                map_mut(container, "securityContext").insert("appArmorProfile".to_owned(), profile);
            }
        }
    }
}

/// The profile of an annotation's value.
pub fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        local => {
            let local = local
                .strip_prefix("localhost/")
                .filter(|local| !local.is_empty() && local.trim() == *local)?;
            Some(json!({"type": "Localhost", "localhostProfile": local}))
        }
    }
}
