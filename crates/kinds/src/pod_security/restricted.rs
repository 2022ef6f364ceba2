//! The additional checks of the restricted level.

use model::Object;
use model::object::{has, text, texts, value};
use serde_json::Value;

use super::baseline::{added_capabilities, forbidden_profiles, is_confining, profile};
use super::checks::{Pod, Violation, containers_named, plural, quoted, security_of, setters, sorted};

/// Volume types that give no access to the host.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Other volume types, as messages name them.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// A boolean of a security context, if it is set.
fn flag(security: Option<&Object>, field: &str) -> Option<bool> {
    security?.get(field)?.as_bool()
}

pub(super) fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    let is_open = |container| flag(security_of(container), "allowPrivilegeEscalation") != Some(false);
    let containers = pod.containers_where(is_open);
    (!containers.is_empty()).then(|| Violation {
        reason: "allowPrivilegeEscalation != false",
        detail: format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            containers_named(&containers)
        ),
    })
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let keeps = pod.containers_where(|container| {
        !texts(container, &["securityContext", "capabilities", "drop"]).contains(&"ALL")
    });
    let mut details = Vec::new();
    if !keeps.is_empty() {
        let setters = containers_named(&keeps);
        details.push(format!("{setters} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    details.extend(added_capabilities(pod, |name| name == "NET_BIND_SERVICE"));
    (!details.is_empty())
        .then(|| Violation { reason: "unrestricted capabilities", detail: details.join("; ") })
}

pub(super) fn volumes(pod: &Pod<'_>) -> Option<Violation> {
    let bad: Vec<&Object> =
        pod.volumes().filter(|volume| !VOLUMES.iter().any(|kind| has(volume, &[kind]))).collect();
    if bad.is_empty() {
        return None;
    }
    let kind =
        |volume: &&Object| OTHER_VOLUMES.into_iter().find(|kind| has(volume, &[kind])).unwrap_or("unknown");
    let kinds = sorted(bad.iter().map(kind));
    let detail = format!(
        "{} {} {} {} {}",
        plural(bad.len(), "volume", "volumes"),
        quoted(bad.iter().map(|volume| text(volume, &["name"]))),
        plural(bad.len(), "uses", "use"),
        plural(kinds.len(), "restricted volume type", "restricted volume types"),
        quoted(kinds)
    );
    Some(Violation { reason: "restricted volume types", detail })
}

pub(super) fn non_root(pod: &Pod<'_>) -> Option<Violation> {
    let (reason, field) = ("runAsNonRoot != true", "runAsNonRoot");
    let of_pod = flag(pod.security(), field);
    let of_container = |container| flag(security_of(container), field);
    let refuse = pod.containers_where(|container| of_container(container) == Some(false));
    if let Some(setters) = setters(of_pod == Some(false), &refuse) {
        let detail = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return Some(Violation { reason, detail });
    }
    let open = pod.containers_where(|container| of_container(container).is_none() && of_pod != Some(true));
    (!open.is_empty()).then(|| {
        let setters = containers_named(&open);
        Violation { reason, detail: format!("pod or {setters} must set securityContext.runAsNonRoot=true") }
    })
}

pub(super) fn root_user(pod: &Pod<'_>) -> Option<Violation> {
    let is_root = |security: &Object| value(security, &["runAsUser"]).and_then(Value::as_i64) == Some(0);
    let containers = pod.containers_where(|container| security_of(container).is_some_and(is_root));
    let setters = setters(pod.security().is_some_and(is_root), &containers)?;
    Some(Violation { reason: "runAsUser=0", detail: format!("{setters} must not set runAsUser=0") })
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let (reason, field) = ("seccompProfile", "seccompProfile");
    let of_pod = profile(pod.security(), field);
    let (containers, values) = forbidden_profiles(pod, field);
    if let Some(setters) = setters(of_pod.is_some_and(|profile| !is_confining(profile)), &containers) {
        let detail =
            format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(values));
        return Some(Violation { reason, detail });
    }
    if of_pod.is_some() {
        return None;
    }
    let open = pod.containers_where(|container| profile(security_of(container), field).is_none());
    (!open.is_empty()).then(|| {
        let setters = containers_named(&open);
        let detail = format!(
            "pod or {setters} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        );
        Violation { reason, detail }
    })
}
