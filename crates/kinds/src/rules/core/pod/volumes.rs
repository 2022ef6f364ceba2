//! Volumes of a Pod.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain};
use model::object::{entries, is_true, items, number, text};
use serde_json::Value;

use super::env::check_file;
use super::fields::{
    Errors, descending, file_mode, invalid, local_path, no_backsteps, object, objects, require, set_text,
    texts, within,
};
use super::projected;
use super::sources;
use quantity::Quantity;

/// The valid volumes, by name.
#[derive(Default)]
pub struct Volumes<'a>(BTreeMap<&'a str, &'a Object>);

impl Volumes<'_> {
    /// Whether there is a volume with this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether the volume with this name is a PersistentVolumeClaim.
    pub fn is_claim(&self, name: &str) -> Option<bool> {
        let volume = self.0.get(name)?;
        Some(volume.contains_key("persistentVolumeClaim") || volume.contains_key("ephemeral"))
    }
}

/// Validates a volume source.
type Check = fn(&mut Errors, &Object, &Path<'_>);

/// Volume sources in Kubernetes' order: the field, its name in errors about a second source, its name in other errors,
/// and the validation.
const SOURCES: [(&str, &str, &str, Check); 30] = [
    ("emptyDir", "emptyDir", "emptyDir", check_empty_dir),
    ("hostPath", "hostPath", "hostPath", check_host_path),
    ("gitRepo", "gitRepo", "gitRepo", check_git_repo),
    ("gcePersistentDisk", "gcePersistentDisk", "persistentDisk", |errors, disk, path| {
        check_disk(errors, disk, path, "pdName");
    }),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", |errors, disk, path| {
        check_disk(errors, disk, path, "volumeID");
    }),
    ("secret", "secret", "secret", |errors, secret, path| check_keys(errors, secret, path, "secretName")),
    ("nfs", "nfs", "nfs", check_nfs),
    ("iscsi", "iscsi", "iscsi", sources::check_iscsi),
    ("glusterfs", "glusterfs", "glusterfs", |errors, source, path| {
        all(errors, source, path, &["endpoints", "path"])
    }),
    ("flocker", "flocker", "flocker", sources::check_flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim", |errors, source, path| {
        all(errors, source, path, &["claimName"]);
    }),
    ("rbd", "rbd", "rbd", |errors, source, path| {
        require_items(errors, source, path, "monitors");
        all(errors, source, path, &["image"]);
    }),
    ("cinder", "cinder", "cinder", sources::check_cinder),
    ("cephfs", "cephFS", "cephfs", |errors, source, path| require_items(errors, source, path, "monitors")),
    ("quobyte", "quobyte", "quobyte", sources::check_quobyte),
    ("downwardAPI", "downwarAPI", "downwardAPI", check_downward),
    ("fc", "fc", "fc", sources::check_fibre_channel),
    ("flexVolume", "flexVolume", "flexVolume", check_flex),
    ("configMap", "configMap", "configMap", |errors, map, path| check_keys(errors, map, path, "name")),
    ("azureFile", "azureFile", "azureFile", |errors, source, path| {
        all(errors, source, path, &["secretName", "shareName"]);
    }),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume", |errors, source, path| {
        all(errors, source, path, &["volumePath"]);
    }),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", |errors, source, path| {
        all(errors, source, path, &["pdID"]);
    }),
    ("portworxVolume", "portworxVolume", "portworxVolume", |errors, source, path| {
        all(errors, source, path, &["volumeID"]);
    }),
    ("azureDisk", "azureDisk", "azureDisk", sources::check_azure_disk),
    ("storageos", "storageos", "storageos", sources::check_storage_os),
    ("projected", "projected", "projected", projected::check),
    ("scaleIO", "scaleIO", "scaleIO", |errors, source, path| {
        all(errors, source, path, &["gateway", "system", "volumeName"]);
    }),
    ("csi", "csi", "csi", sources::check_csi),
    ("ephemeral", "ephemeral", "ephemeral", sources::check_ephemeral),
    ("image", "image", "image", |_, _, _| {}),
];

/// Validates the volumes of a Pod, and returns the valid ones. `pod` is the name of the Pod, and `None` for a template.
pub fn check<'a>(errors: &mut Errors, spec: &'a Object, path: &Path<'_>, pod: Option<&str>) -> Volumes<'a> {
    let mut good = Volumes::default();
    let named = pod.filter(|name| !name.is_empty());
    let made: BTreeSet<String> = named
        .into_iter()
        .flat_map(|pod| {
            let ephemeral = objects(spec, "volumes").filter(|(_, volume)| volume.contains_key("ephemeral"));
            ephemeral.map(move |(_, volume)| format!("{pod}-{}", text(volume, &["name"])))
        })
        .collect();
    for (index, volume) in objects(spec, "volumes") {
        let path = path.at(index);
        let before = errors.len();
        let name = text(volume, &["name"]);
        check_source(errors, volume, &path, pod);
        match name {
            "" => errors.push(FieldError::required(path.field("name"), "")),
            name => invalid(errors, &path.field("name"), name, dns1123_label(name)),
        }
        if good.has(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        if errors.len() == before {
            good.0.insert(name, volume);
        }
        let claim = text(volume, &["persistentVolumeClaim", "claimName"]);
        if made.contains(claim) {
            let rule = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(path.field("persistentVolumeClaim.claimName"), claim, rule));
        }
    }
    good
}

fn check_source(errors: &mut Errors, volume: &Object, path: &Path<'_>, pod: Option<&str>) {
    let mut found = false;
    let name = text(volume, &["name"]);
    for (field, second, first, check) in SOURCES {
        let Some(source) = object(volume, field) else { continue };
        if found {
            let rule = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(path.field(second), rule));
        } else {
            check(errors, source, &path.field(first));
            match (field, pod) {
                ("ephemeral", Some(pod)) if !pod.is_empty() && !name.is_empty() => {
                    let claim = format!("{pod}-{name}");
                    for problem in dns1123_subdomain(&claim) {
                        let problem = format!("PVC name {}: {problem}", model::error::quote(&claim));
                        errors.push(FieldError::invalid(path.field("name"), name, problem));
                    }
                }
                ("image", pod) => check_image(errors, source, &path.field(first), pod.is_some()),
                _ => {}
            }
        }
        found = true;
        let target = text(source, &["targetPortal"]);
        if field == "iscsi" && source.contains_key("initiatorName") && name.len() + 1 + target.len() > 64 {
            let rule = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                        iscsi.initiatorName is specified.";
            errors.push(FieldError::invalid(path.field("name"), name, rule));
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// The errors for missing required strings.
pub fn all(errors: &mut Errors, source: &Object, path: &Path<'_>, fields: &[&str]) {
    for field in fields {
        require(errors, source, path, field);
    }
}

fn require_items(errors: &mut Errors, source: &Object, path: &Path<'_>, field: &str) {
    if items(source, &[field]).is_empty() {
        errors.push(FieldError::required(path.field(field), ""));
    }
}

fn check_empty_dir(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    if Quantity::parse(text(source, &["sizeLimit"])).is_ok_and(|limit| limit.is_negative()) {
        let rule = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(path.field("sizeLimit"), rule));
    }
}

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

fn check_host_path(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    let target = text(source, &["path"]);
    if target.is_empty() {
        errors.push(FieldError::required(path.field("path"), ""));
        return;
    }
    no_backsteps(errors, &path.field("path"), target);
    if let Some(kind) = set_text(source, "type").filter(|kind| !HOST_PATH_TYPES.contains(kind)) {
        errors.push(FieldError::not_supported(path.field("type"), kind, &HOST_PATH_TYPES));
    }
}

fn check_git_repo(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    require(errors, source, path, "repository");
    descending(errors, &path.field("directory"), text(source, &["directory"]));
}

fn check_disk(errors: &mut Errors, disk: &Object, path: &Path<'_>, name: &str) {
    require(errors, disk, path, name);
    let partition = number(disk, &["partition"]);
    if !(0..=255).contains(&partition) {
        let rule = super::fields::range_rule(1, 255);
        errors.push(FieldError::invalid(path.field("partition"), partition, rule));
    }
}

fn check_keys(errors: &mut Errors, source: &Object, path: &Path<'_>, name: &str) {
    require(errors, source, path, name);
    file_mode(errors, source, path, "defaultMode");
    check_key_items(errors, source, path);
}

/// Validates the items of a ConfigMap or Secret volume.
pub fn check_key_items(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    for (index, item) in objects(source, "items") {
        check_key_item(errors, item, &path.item("items", index));
    }
}

/// Validates one item of a ConfigMap or Secret volume.
pub fn check_key_item(errors: &mut Errors, item: &Object, path: &Path<'_>) {
    all(errors, item, path, &["key", "path"]);
    local_path(errors, &path.field("path"), text(item, &["path"]));
    file_mode(errors, item, path, "mode");
}

fn check_nfs(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    all(errors, source, path, &["server", "path"]);
    let target = text(source, &["path"]);
    if !target.starts_with('/') {
        errors.push(FieldError::invalid(path.field("path"), target, "must be an absolute path"));
    }
}

fn check_downward(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    file_mode(errors, source, path, "defaultMode");
    for (_, file) in objects(source, "items") {
        check_file(errors, file, path);
    }
}

fn check_flex(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    require(errors, source, path, "driver");
    for (key, _) in entries(source, &["options"]) {
        let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let rule = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(path.field("options").key(key), key.as_str(), rule));
        }
    }
}

fn check_image(errors: &mut Errors, source: &Object, path: &Path<'_>, in_pod: bool) {
    if in_pod {
        require(errors, source, path, "reference");
    }
    super::fields::require_one_of(errors, source, path, "pullPolicy", &super::containers::PULL_POLICIES);
}

/// Variables from files need an `emptyDir` volume.
pub fn check_file_variables(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    for (path, container) in super::fields::all_containers(spec, path) {
        for (index, variable) in objects(container, "env") {
            let Some(name) = variable
                .get("valueFrom")
                .and_then(|from| from.get("fileKeyRef"))
                .map(|file| file.get("volumeName").and_then(Value::as_str).unwrap_or_default())
            else {
                continue;
            };
            let path = path.item("env", index);
            let path = path.field("valueFrom.fileKeyRef.volumeName");
            // The last volume with this name counts.
            let volumes = objects(spec, "volumes").filter(|(_, volume)| text(volume, &["name"]) == name);
            match volumes.last() {
                None => errors.push(FieldError::not_found(path, name)),
                Some((_, volume)) if !volume.contains_key("emptyDir") => {
                    let rule = "referenced volume must be of type emptyDir";
                    errors.push(FieldError::invalid(path, name, rule));
                }
                Some(_) => {}
            }
        }
    }
}

/// Token projections are invalid in a Pod without a service account.
pub fn check_tokens(errors: &mut Errors, spec: &Object) {
    if !text(spec, &["serviceAccountName"]).is_empty() {
        return;
    }
    for (index, volume) in objects(spec, "volumes") {
        let Some(projected) = object(volume, "projected") else { continue };
        for (at, source) in objects(projected, "sources") {
            if source.contains_key("serviceAccountToken") {
                let path = Path::SPEC.item("volumes", index);
                let path = path.item("projected.sources", at);
                errors.push(FieldError::forbidden(
                    path.field("serviceAccountToken"),
                    "must not be specified when serviceAccountName is not set",
                ));
            }
        }
    }
}

/// Whether the list in a field is not empty.
pub fn lists_any(source: &Object, field: &str) -> bool {
    texts(source, field).next().is_some()
}

/// The error for an invalid LUN.
pub fn lun(errors: &mut Errors, source: &Object, path: &Path<'_>) {
    within(errors, source, path, "lun", 0, 255);
}

/// Whether a field is true.
pub fn flag(source: &Object, field: &str) -> bool {
    is_true(source, &[field])
}
