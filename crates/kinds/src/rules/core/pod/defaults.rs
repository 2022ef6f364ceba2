//! Defaults of a Pod.

use model::Object;
use model::object::{map_mut, set_default, text};
use serde_json::{Value, json};

use super::image::pulls_latest;
use super::resources::{default_pod_resources, round_amounts};

/// The default mode of projected files: 0644.
const FILE_MODE: i64 = 0o644;

/// Defaults of a Pod template.
pub(in crate::rules) fn default_template(template: &mut Object) {
    default_spec(map_mut(template, "spec"));
}

/// Defaults of a Pod.
pub(super) fn default_pod(pod: &mut Object) {
    let spec = map_mut(pod, "spec");
    for field in ["containers", "initContainers"] {
        each(spec, field, request_limits);
    }
    default_pod_resources(spec);
    spec.entry("enableServiceLinks").or_insert(Value::Bool(true));
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for field in ["containers", "initContainers"] {
            each(spec, field, |container| each(container, "ports", host_port));
        }
    }
    default_spec(spec);
    let status = map_mut(pod, "status");
    same_addresses(status);
}

/// Synchronizes `podIP` and `podIPs`; older kubelets write only the first.
fn same_addresses(status: &mut Object) {
    let first = |status: &Object| {
        let first = status.get("podIPs").and_then(|ips| ips.get(0)).and_then(|ip| ip.get("ip"));
        first.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (one, listed) = (text(status, &["podIP"]).to_owned(), first(status));
    if one.is_empty() && !listed.is_empty() {
        status.insert("podIP".to_owned(), listed.into());
    } else if one != listed {
        status.insert("podIPs".to_owned(), json!([{"ip": one}]));
    }
}

/// Defaults of a Pod spec, also in a template.
pub(in crate::rules) fn default_spec(spec: &mut Object) {
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "schedulerName", "default-scheduler");
    spec.entry("securityContext").or_insert_with(|| json!({}));
    set_number_once(spec, "terminationGracePeriodSeconds", 30);
    round_amounts(spec, "overhead");
    inside(spec, "resources", round_resources);
    each(spec, "volumes", default_volume);
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, field, default_container);
    }
    same_account(spec);
    drop_disabled(spec);
}

/// Drops fields whose feature gates are off by default.
fn drop_disabled(spec: &mut Object) {
    spec.remove("workloadRef");
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, field, |container| {
            let lifecycle = container.get_mut("lifecycle").and_then(Value::as_object_mut);
            if lifecycle
                .is_some_and(|lifecycle| lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty())
            {
                container.remove("lifecycle");
            }
        });
    }
    each(spec, "volumes", |volume| {
        inside(volume, "projected", |projected| {
            each(projected, "sources", |source| {
                source.remove("clusterTrustBundle");
                source.remove("podCertificate");
            });
        });
    });
}

/// Synchronizes `serviceAccount` with `serviceAccountName`, which wins.
fn same_account(spec: &mut Object) {
    let name = match (text(spec, &["serviceAccountName"]), text(spec, &["serviceAccount"])) {
        ("", "") => return,
        ("", old) => old.to_owned(),
        (new, _) => new.to_owned(),
    };
    for field in ["serviceAccountName", "serviceAccount"] {
        spec.insert(field.to_owned(), name.as_str().into());
    }
}

/// Calls `change` with the objects of a list.
fn each(object: &mut Object, field: &str, change: impl Fn(&mut Object)) {
    let items = object.get_mut(field).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

/// Calls `change` with the object in a field.
fn inside(object: &mut Object, field: &str, change: impl FnOnce(&mut Object)) {
    if let Some(Value::Object(inner)) = object.get_mut(field) {
        change(inner);
    }
}

fn set_number(object: &mut Object, field: &str, number: i64) {
    if object.get(field).is_none_or(|value| *value == 0) {
        object.insert(field.to_owned(), number.into());
    }
}

fn request_limits(container: &mut Object) {
    inside(container, "resources", |resources| {
        let Some(Value::Object(limits)) = resources.get("limits") else { return };
        let is_requested =
            |name: &str| resources.get("requests").is_some_and(|requests| requests.get(name).is_some());
        let missing = limits.iter().filter(|(name, _)| !is_requested(name));
        let missing: Vec<(String, Value)> =
            missing.map(|(name, amount)| (name.clone(), amount.clone())).collect();
        map_mut(resources, "requests").extend(missing);
    });
}

fn host_port(port: &mut Object) {
    let number = port.get("containerPort").cloned().unwrap_or_default();
    if number.is_number() {
        port.entry("hostPort").or_insert(number);
    }
}

fn round_resources(resources: &mut Object) {
    round_amounts(resources, "limits");
    round_amounts(resources, "requests");
}

fn default_container(container: &mut Object) {
    if text(container, &["imagePullPolicy"]).is_empty() {
        let policy = if pulls_latest(text(container, &["image"])) { "Always" } else { "IfNotPresent" };
        container.insert("imagePullPolicy".to_owned(), policy.into());
    }
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| set_default(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        inside(variable, "valueFrom", |from| {
            inside(from, "fieldRef", |field| set_default(field, "apiVersion", "v1"));
            inside(from, "fileKeyRef", |file| {
                file.entry("optional").or_insert(Value::Bool(false));
            });
        });
    });
    inside(container, "resources", round_resources);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        inside(container, probe, default_probe);
    }
    inside(container, "lifecycle", |lifecycle| {
        for hook in ["postStart", "preStop"] {
            inside(lifecycle, hook, |hook| inside(hook, "httpGet", default_http_get));
        }
    });
}

fn default_probe(probe: &mut Object) {
    let numbers =
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)];
    for (field, number) in numbers {
        set_number(probe, field, number);
    }
    inside(probe, "httpGet", default_http_get);
    inside(probe, "grpc", |grpc| {
        if text(grpc, &["service"]).is_empty() {
            grpc.insert("service".to_owned(), "".into());
        }
    });
}

fn default_http_get(action: &mut Object) {
    set_default(action, "path", "/");
    set_default(action, "scheme", "HTTP");
}

fn default_volume(volume: &mut Object) {
    if !volume.keys().any(|key| key != "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        inside(volume, source, |source| set_number_once(source, "defaultMode", FILE_MODE));
    }
    inside(volume, "downwardAPI", default_files);
    inside(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            inside(source, "downwardAPI", default_files);
            inside(source, "serviceAccountToken", |token| set_number_once(token, "expirationSeconds", 3600));
        });
    });
    inside(volume, "hostPath", |host| set_default(host, "type", ""));
    inside(volume, "image", |image| {
        let policy = if pulls_latest(text(image, &["reference"])) { "Always" } else { "IfNotPresent" };
        set_default(image, "pullPolicy", policy);
    });
    inside(volume, "ephemeral", |ephemeral| {
        inside(ephemeral, "volumeClaimTemplate", |template| {
            inside(template, "spec", |spec| {
                set_default(spec, "volumeMode", "Filesystem");
                inside(spec, "resources", round_resources);
            });
        });
    });
    for (source, fields) in SOURCE_DEFAULTS {
        inside(volume, source, |source| {
            fields.iter().for_each(|(field, value)| set_default(source, field, value))
        });
    }
    inside(volume, "azureDisk", |disk| {
        disk.entry("readOnly").or_insert(Value::Bool(false));
    });
}

/// Default strings of volume sources.
const SOURCE_DEFAULTS: [(&str, &[(&str, &str)]); 4] = [
    ("iscsi", &[("iscsiInterface", "default")]),
    ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
    ("azureDisk", &[("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")]),
    ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
];

fn set_number_once(object: &mut Object, field: &str, number: i64) {
    if !object.contains_key(field) {
        object.insert(field.to_owned(), number.into());
    }
}

fn default_files(source: &mut Object) {
    each(source, "items", |file| inside(file, "fieldRef", |field| set_default(field, "apiVersion", "v1")));
}
