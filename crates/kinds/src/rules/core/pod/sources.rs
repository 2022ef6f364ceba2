//! Volume sources with more validation than required strings.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain};
use model::object::text;

use super::fields::{Errors, invalid, object, one_of, require, set_number, set_text};
use super::volumes::{all, flag, lists_any, lun};
use crate::rules::core::bad_claim_template;

/// iSCSI: the names of target and initiator.
pub fn check_iscsi(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    require(errors, source, path, "targetPortal");
    match text(source, &["iqn"]) {
        "" => errors.push(FieldError::required(path.field("iqn"), "")),
        name => check_iscsi_name(errors, &path.field("iqn"), name),
    }
    lun(errors, source, path);
    let asks = flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession");
    if asks && !source.contains_key("secretRef") {
        errors.push(FieldError::required(path.field("secretRef"), ""));
    }
    if let Some(name) = set_text(source, "initiatorName") {
        check_iscsi_name(errors, &path.field("initiatorname"), name);
    }
}

fn check_iscsi_name(errors: &mut Errors, path: &Path<'_>, name: &str) {
    let rule = match name.get(..3) {
        Some("iqn") if is_qualified_iscsi(name) => return,
        Some("eui") if name.len() == 20 && is_hex(name, "eui.") => return,
        Some("naa") if name.len() == 36 && is_hex(name, "naa.") => return,
        Some("iqn" | "eui" | "naa") => "must be valid format",
        _ => "must be valid format starting with iqn, eui, or naa",
    };
    errors.push(FieldError::invalid(path, name, rule));
}

fn is_hex(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// `iqn.` with year and month, a reversed domain, and an optional name after a colon.
fn is_qualified_iscsi(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("iqn.") else { return false };
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    let is_word = |text: &str| {
        let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        bytes.first().is_some_and(|byte| is_end(*byte))
            && bytes.last().is_some_and(|byte| is_end(*byte))
            && bytes.iter().all(|byte| is_end(*byte) || b".:-".contains(byte))
    };
    is_date && is_word(rest)
}

/// Flocker: exactly one of two names.
pub fn check_flocker(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    let (name, uid) = (text(source, &["datasetName"]), text(source, &["datasetUUID"]));
    if name.is_empty() && uid.is_empty() {
        errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uid.is_empty() {
        let rule = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", rule));
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(path.field("datasetName"), name, "must not contain '/'"));
    }
}

/// Cinder: a volume, and a Secret with a name.
pub fn check_cinder(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    require(errors, source, path, "volumeID");
    secret_name(errors, source, path);
}

fn secret_name(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    if let Some(secret) = object(source, "secretRef") {
        require(errors, secret, &path.field("secretRef"), "name");
    }
}

/// Quobyte: hosts with ports.
pub fn check_quobyte(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    let registry = text(source, &["registry"]);
    let rule = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        errors.push(FieldError::required(path.field("registry"), rule));
    } else if text(source, &["tenant"]).len() >= 65 {
        let rule = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(path.field("tenant"), rule));
    } else {
        let is_pair = |pair: &&str| {
            let host = pair.rsplit_once(':').map(|(host, _)| host);
            !host.is_some_and(|host| !host.contains(':') || (host.starts_with('[') && host.ends_with(']')))
        };
        for _ in registry.split(',').filter(is_pair) {
            errors.push(FieldError::invalid(path.field("registry"), registry, rule));
        }
    }
    require(errors, source, path, "volume");
}

/// Fibre Channel: WWNs of targets, or WWIDs.
pub fn check_fibre_channel(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    let (targets, disks) = (lists_any(source, "targetWWNs"), lists_any(source, "wwids"));
    let field = path.field("targetWWNs");
    if !targets && !disks {
        let rule = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(field, rule));
    }
    if targets && disks {
        let rule = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(field, source.get("targetWWNs").cloned().unwrap_or_default(), rule));
    }
    if targets {
        match set_number(source, "lun") {
            None => {
                errors.push(FieldError::required(
                    path.field("lun"),
                    "lun is required if targetWWNs is specified",
                ));
            }
            Some(_) => lun(errors, source, path),
        }
    }
}

const CACHING_MODES: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS: [&str; 3] = ["Dedicated", "Managed", "Shared"];

/// Azure Disk: the URI must match the kind.
pub fn check_azure_disk(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    all(errors, source, path, &["diskName", "diskURI"]);
    if let Some(mode) = set_text(source, "cachingMode") {
        one_of(errors, &path.field("cachingMode"), mode, &CACHING_MODES);
    }
    let Some(kind) = set_text(source, "kind") else { return };
    one_of(errors, &path.field("kind"), kind, &DISK_KINDS);
    let (prefix, shown) = if kind == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    } else {
        ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
    };
    let address = text(source, &["diskURI"]);
    if !address.starts_with(prefix) {
        errors.push(FieldError::not_supported(path.field("diskURI"), address, &[shown]));
    }
}

/// StorageOS: DNS labels as names.
pub fn check_storage_os(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    match text(source, &["volumeName"]) {
        "" => errors.push(FieldError::required(path.field("volumeName"), "")),
        name => invalid(errors, &path.field("volumeName"), name, dns1123_label(name)),
    }
    let namespace = text(source, &["volumeNamespace"]);
    if !namespace.is_empty() {
        invalid(errors, &path.field("volumeNamespace"), namespace, dns1123_label(namespace));
    }
    secret_name(errors, source, path);
}

/// CSI: the names of a driver and a Secret.
pub fn check_csi(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    let driver_path = path.field("driver");
    match text(source, &["driver"]) {
        "" => errors.push(FieldError::required(driver_path, "")),
        driver => {
            if driver.len() > 63 {
                errors.push(FieldError::too_long(driver_path, 63));
            }
            invalid(errors, &driver_path, driver, dns1123_subdomain(&driver.to_lowercase()));
        }
    }
    let Some(secret) = object(source, "nodePublishSecretRef") else { return };
    match text(secret, &["name"]) {
        "" => errors.push(FieldError::required(path.field("nodePublishSecretRef.name"), "")),
        name => invalid(errors, &path.field("name"), name, dns1123_subdomain(name)),
    }
}

/// Ephemeral volumes: the template of a claim, with only labels and annotations in its metadata.
pub fn check_ephemeral(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    let path = path.field("volumeClaimTemplate");
    let Some(template) = object(source, "volumeClaimTemplate") else {
        errors.push(FieldError::required(path, ""));
        return;
    };
    if let Some(metadata) = object(template, "metadata") {
        check_claim_metadata(errors, metadata, &path.field("metadata"));
    }
    errors.extend(bad_claim_template(&path, template));
}

/// Validates the metadata of a claim template: only labels and annotations are allowed.
pub fn check_claim_metadata(errors: &mut Errors, metadata: &Object, path: &Path<'_>) {
    super::annotations::check_annotations(errors, metadata, &path.field("annotations"));
    super::annotations::check_labels(errors, metadata.get("labels"), &path.field("labels"));
    for (field, shown) in SERVERS {
        if metadata.get(field).is_some_and(|value| !value.is_null()) {
            errors.push(FieldError::forbidden(path.field(shown), "cannot be set"));
        }
    }
}

/// Metadata that only the server sets in a claim, in Kubernetes' order, with its names in errors.
const SERVERS: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];
