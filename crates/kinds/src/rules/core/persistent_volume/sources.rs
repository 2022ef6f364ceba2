//! Volume sources of PersistentVolumes.

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_label;
use model::object::{entries, has, is_true, items, number, set_default, text, value};
use serde_json::{Value, json};

use crate::rules::common::{invalid_for, unsupported};
use crate::rules::storage::bad_driver_name;

/// A volume source: its field, its name in errors, its required fields, and further validation.
struct Source {
    field: &'static str,
    path: &'static str,
    required: &'static [&'static str],
    more: fn(&Path<'_>, &Object) -> Vec<FieldError>,
}

const fn source(
    field: &'static str,
    path: &'static str,
    required: &'static [&'static str],
    more: fn(&Path<'_>, &Object) -> Vec<FieldError>,
) -> Source {
    Source { field, path, required, more }
}

/// In Kubernetes' order.
const SOURCES: [Source; 22] = [
    source("hostPath", "hostPath", &["path"], bad_host_path),
    source("gcePersistentDisk", "persistentDisk", &["pdName"], bad_partition),
    source("awsElasticBlockStore", "awsElasticBlockStore", &["volumeID"], bad_partition),
    source("glusterfs", "glusterfs", &["endpoints", "path"], nothing),
    source("flocker", "flocker", &[], bad_flocker),
    source("nfs", "nfs", &["server", "path"], bad_nfs),
    source("rbd", "rbd", &["monitors", "image"], nothing),
    source("quobyte", "quobyte", &[], bad_quobyte),
    source("cephfs", "cephfs", &["monitors"], nothing),
    source("iscsi", "iscsi", &["targetPortal"], bad_iscsi),
    source("cinder", "cinder", &["volumeID"], bad_secret),
    source("fc", "fc", &[], bad_channel),
    source("flexVolume", "flexVolume", &["driver"], bad_options),
    source("azureFile", "azureFile", &["secretName", "shareName"], bad_azure_file),
    source("vsphereVolume", "vsphereVolume", &["volumePath"], nothing),
    source("photonPersistentDisk", "photonPersistentDisk", &["pdID"], nothing),
    source("portworxVolume", "portworxVolume", &["volumeID"], nothing),
    source("azureDisk", "azureDisk", &["diskName", "diskURI"], bad_azure_disk),
    source("scaleIO", "scaleIO", &["gateway", "system", "volumeName"], nothing),
    source("local", "local", &["path"], |path, local| back_steps(path, text(local, &["path"]))),
    source("storageos", "storageos", &["volumeName"], bad_storageos),
    source("csi", "csi", &[], bad_csi),
];

/// The fields of all sources.
pub(super) const NAMES: [&str; SOURCES.len()] = {
    let mut names = [""; SOURCES.len()];
    let mut at = 0;
    while at < SOURCES.len() {
        names[at] = SOURCES[at].field;
        at += 1;
    }
    names
};

/// Deprecated and removed sources: field, name in warnings, message.
pub(super) const OLD: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Defaults.
const DEFAULTS: [(&str, &str, &str); 11] = [
    ("hostPath", "type", ""),
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "kind", "Shared"),
    ("azureDisk", "fsType", "ext4"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
    ("azureDisk", "readOnly", "false"),
];

pub(super) fn default(spec: &mut Object) {
    for (source, field, text) in DEFAULTS {
        let Some(Value::Object(source)) = spec.get_mut(source) else { continue };
        if field == "readOnly" {
            source.entry(field).or_insert(json!(false));
        } else {
            set_default(source, field, text);
        }
    }
}

/// Validates that there is exactly one source, and a valid one.
pub(super) fn validate(path: &Path<'_>, spec: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut found = false;
    for source in &SOURCES {
        let Some(own) = spec.get(source.field).and_then(Value::as_object) else { continue };
        if found && source.field != "flexVolume" {
            let problem = "may not specify more than 1 volume type";
            let field = if source.field == "cephfs" { "cephFS" } else { source.field };
            errors.push(FieldError::forbidden(path.field(field), problem));
            continue;
        }
        found = true;
        let own_path = path.field(source.path);
        errors.extend(missing(&own_path, own, source.required));
        errors.extend((source.more)(&own_path, own));
        if source.field == "local" && !has(spec, &["nodeAffinity"]) {
            let problem = "Local volume requires node affinity";
            errors.push(FieldError::required(path.field("nodeAffinity"), problem));
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

fn missing(path: &Path<'_>, own: &Object, required: &[&str]) -> Vec<FieldError> {
    let absent =
        required.iter().filter(|field| text(own, &[field]).is_empty() && items(own, &[field]).is_empty());
    absent.map(|field| FieldError::required(path.field(field), "")).collect()
}

fn nothing(_: &Path<'_>, _: &Object) -> Vec<FieldError> {
    Vec::new()
}

fn back_steps(path: &Path<'_>, target: &str) -> Vec<FieldError> {
    let back = target.split('/').any(|part| part == "..");
    let error = || FieldError::invalid(path.field("path"), target, "must not contain '..'");
    back.then(error).into_iter().collect()
}

fn bad_host_path(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let mut errors = back_steps(path, text(own, &["path"]));
    errors.extend(unsupported(&path.field("type"), text(own, &["type"]), &TYPES));
    errors
}

fn bad_partition(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let partition = number(own, &["partition"]);
    let fine = (0..=255).contains(&partition);
    let problem = "must be between 1 and 255, inclusive";
    let error = || FieldError::invalid(path.field("partition"), partition, problem);
    (!fine).then(error).into_iter().collect()
}

fn bad_nfs(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let target = text(own, &["path"]);
    let error = || FieldError::invalid(path.field("path"), target, "must be an absolute path");
    (!target.starts_with('/')).then(error).into_iter().collect()
}

fn bad_flocker(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let (name, uuid) = (text(own, &["datasetName"]), text(own, &["datasetUUID"]));
    let mut errors = Vec::new();
    if name.is_empty() && uuid.is_empty() {
        errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let problem = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", problem));
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(path.field("datasetName"), name, "must not contain '/'"));
    }
    errors
}

fn bad_quobyte(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = text(own, &["registry"]);
    let mut errors = Vec::new();
    if registry.is_empty() {
        errors.push(FieldError::required(path.field("registry"), PAIRS));
    } else if text(own, &["tenant"]).len() >= 65 {
        let problem = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(path.field("tenant"), problem));
    } else {
        let bad = registry.split(',').filter(|pair| !pair.contains(':'));
        errors.extend(bad.map(|_| FieldError::invalid(path.field("registry"), registry, PAIRS)));
    }
    errors.extend(missing(path, own, &["volume"]));
    errors
}

fn bad_iscsi(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(own, &["iqn"]);
    if name.is_empty() {
        errors.push(FieldError::required(path.field("iqn"), ""));
    } else if !is_initiator(name) {
        errors.push(FieldError::invalid(path.field("iqn"), name, "must be valid format"));
    }
    errors.extend(bad_unit(path, own));
    let secret = has(own, &["secretRef"]);
    if !secret && (is_true(own, &["chapAuthDiscovery"]) || is_true(own, &["chapAuthSession"])) {
        errors.push(FieldError::required(path.field("secretRef"), ""));
    }
    if secret && text(own, &["secretRef", "name"]).is_empty() {
        errors.push(FieldError::required(path.field("secretRef.name"), ""));
    }
    let initiator = value(own, &["initiatorName"]).and_then(Value::as_str);
    if let Some(initiator) = initiator.filter(|initiator| !is_initiator(initiator)) {
        errors.push(FieldError::invalid(path.field("initiatorname"), initiator, "must be valid format"));
    }
    errors
}

/// Whether a text is an iSCSI name: `iqn.2001-04.com.example:x`, `eui.` and 16 hexadecimal digits, or `naa.` and 32 of
/// them.
fn is_initiator(name: &str) -> bool {
    let hexadecimal =
        |rest: &str, length| rest.len() == length && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let dated = |rest: &str| {
        let bytes = rest.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        (0..4).all(digit)
            && bytes.get(4) == Some(&b'-')
            && (5..7).all(digit)
            && bytes.get(7) == Some(&b'.')
            && rest[8..].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte))
    };
    match name.split_once('.') {
        Some(("iqn", rest)) => dated(rest),
        Some(("eui", rest)) => hexadecimal(rest, 16),
        Some(("naa", rest)) => hexadecimal(rest, 32),
        _ => false,
    }
}

fn bad_unit(path: &Path<'_>, own: &Object) -> Option<FieldError> {
    let unit = number(own, &["lun"]);
    let fine = (0..=255).contains(&unit);
    let problem = "must be between 0 and 255, inclusive";
    (!fine).then(|| FieldError::invalid(path.field("lun"), unit, problem))
}

/// A Secret reference needs name and namespace.
fn bad_secret(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    match own.get("secretRef").and_then(Value::as_object) {
        Some(secret) => missing(&path.field("secretRef"), secret, &["name", "namespace"]),
        None => Vec::new(),
    }
}

fn bad_channel(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let path_of_names = path.field("targetWWNs");
    let (names, ids) = (items(own, &["targetWWNs"]), items(own, &["wwids"]));
    let mut errors = Vec::new();
    if names.is_empty() && ids.is_empty() {
        let problem = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(path_of_names, problem));
    }
    if !names.is_empty() && !ids.is_empty() {
        let problem = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(path_of_names, Value::Array(names.to_vec()), problem));
    }
    if !names.is_empty() {
        if has(own, &["lun"]) {
            errors.extend(bad_unit(path, own));
        } else {
            let problem = "lun is required if targetWWNs is specified";
            errors.push(FieldError::required(path.field("lun"), problem));
        }
    }
    errors
}

fn bad_options(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let reserved = |key: &&String| {
        let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")
    };
    let problem = "kubernetes.io and k8s.io namespaces are reserved";
    let keys = entries(own, &["options"]).map(|(key, _)| key).filter(reserved);
    keys.map(|key| FieldError::invalid(path.field("options").key(key), key.as_str(), problem)).collect()
}

fn bad_azure_file(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let empty = own.get("secretNamespace").is_some_and(|namespace| namespace == "");
    empty.then(|| FieldError::required(path.field("secretNamespace"), "")).into_iter().collect()
}

fn bad_azure_disk(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (mode, kind, uri) = (text(own, &["cachingMode"]), text(own, &["kind"]), text(own, &["diskURI"]));
    let mut errors = Vec::new();
    errors.extend(unsupported(&path.field("cachingMode"), mode, &["None", "ReadOnly", "ReadWrite"]));
    errors.extend(unsupported(&path.field("kind"), kind, &["Dedicated", "Managed", "Shared"]));
    let (start, form) = if kind == "Managed" { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
    if !uri.starts_with(start) {
        errors.push(FieldError::not_supported(path.field("diskURI"), uri, &[form]));
    }
    errors
}

fn bad_storageos(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["volumeName", "volumeNamespace"] {
        let name = text(own, &[field]);
        if !name.is_empty() {
            errors.extend(invalid_for(&path.field(field), name, dns1123_label(name)));
        }
    }
    errors.extend(bad_secret(path, own));
    errors
}

fn bad_csi(path: &Path<'_>, own: &Object) -> Vec<FieldError> {
    let mut errors = bad_driver_name(&path.field("driver"), text(own, &["driver"]));
    errors.extend(missing(path, own, &["volumeHandle"]));
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        if let Some(secret) = own.get(field).and_then(Value::as_object) {
            errors.extend(missing(&path.field(field), secret, &["name", "namespace"]));
        }
    }
    errors
}
