//! The bootstrap objects as data.

use std::net::SocketAddr;

use kinds::rbac::{self, Bootstrapped};
use kinds::{Ranges, flow_schemas, priority_levels};
use serde_json::{Value, json};

use super::{name, services};

const NAMESPACE: [&str; 3] = ["", "v1", "namespaces"];

/// The groups, and their resources if not all, that depend on objects created after the first answer.
const CREATED_LATER: [(&str, &[&str]); 10] = [
    ("", &["services", "endpoints", "configmaps"]),
    ("apiregistration.k8s.io", &[]),
    ("authentication.k8s.io", &[]),
    ("authorization.k8s.io", &[]),
    ("coordination.k8s.io", &["leases"]),
    ("discovery.k8s.io", &[]),
    ("flowcontrol.apiserver.k8s.io", &[]),
    ("networking.k8s.io", &["servicecidrs", "ipaddresses"]),
    (rbac::GROUP, &[]),
    ("scheduling.k8s.io", &[]),
];

/// The namespaces of every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The PriorityClasses of every cluster.
const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// The built-in APIs with the priorities of their APIServices.
const APIS: [(&str, &str, i64, i64); 21] = [
    ("v1", "", 18_000, 1),
    ("v1", "admissionregistration.k8s.io", 16_700, 15),
    ("v1", "apiextensions.k8s.io", 16_700, 15),
    ("v1", "apps", 17_800, 15),
    ("v1", "authentication.k8s.io", 17_700, 15),
    ("v1", "authorization.k8s.io", 17_600, 15),
    ("v1", "autoscaling", 17_500, 15),
    ("v1", "batch", 17_400, 15),
    ("v1", "certificates.k8s.io", 17_300, 15),
    ("v1", "coordination.k8s.io", 16_500, 15),
    ("v1", "discovery.k8s.io", 16_200, 15),
    ("v1", "events.k8s.io", 17_750, 15),
    ("v1", "flowcontrol.apiserver.k8s.io", 16_100, 21),
    ("v1", "networking.k8s.io", 17_200, 15),
    ("v1", "node.k8s.io", 16_300, 15),
    ("v1", "policy", 17_100, 15),
    ("v1", "rbac.authorization.k8s.io", 17_000, 15),
    ("v1", "resource.k8s.io", 16_200, 21),
    ("v1", "scheduling.k8s.io", 16_600, 15),
    ("v1", "storage.k8s.io", 16_800, 15),
    ("v2", "autoscaling", 17_500, 30),
];

/// An object of every cluster.
pub(crate) struct BootstrapObject {
    pub group: &'static str,
    pub version: &'static str,
    pub resource: &'static str,
    /// Empty for cluster-scoped objects.
    pub namespace: &'static str,
    pub object: Value,
    pub update_policy: UpdatePolicy,
}

/// The treatment of an existing object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdatePolicy {
    /// Left alone.
    Keep,
    /// Replaced if it differs.
    Replace,
    /// Completed with missing rules or subjects.
    Merge,
}

impl BootstrapObject {
    pub fn new([group, version, resource]: [&'static str; 3], object: Value) -> Self {
        Self { group, version, resource, namespace: "", object, update_policy: UpdatePolicy::Keep }
    }

    /// A namespaced object that is replaced if it differs.
    pub fn enforced(gvr: [&'static str; 3], namespace: &'static str, object: Value) -> Self {
        Self { namespace, update_policy: UpdatePolicy::Replace, ..Self::new(gvr, object) }
    }

    pub fn name(&self) -> &str {
        name(&self.object)
    }

    pub fn collection(&self) -> String {
        collection([self.group, self.version, self.resource], self.namespace)
    }

    /// The list to look for the object. A field selector avoids long lists of user objects.
    pub fn list(&self) -> String {
        match (self.namespace, self.update_policy) {
            ("", _) | (_, UpdatePolicy::Merge) => format!("{}?limit=500", self.collection()),
            _ => format!("{}?fieldSelector=metadata.name%3D{}", self.collection(), self.name()),
        }
    }

    /// The new state of an existing object; `None` if it needs no change.
    pub fn replacement_for(&self, there: &Value) -> Option<Value> {
        let of_its_own = self.object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata");
        match self.update_policy {
            UpdatePolicy::Keep => None,
            UpdatePolicy::Replace => {
                let is_good = of_its_own.into_iter().all(|(key, value)| there.get(key) == Some(value));
                (!is_good).then(|| self.object.clone())
            }
            UpdatePolicy::Merge => rbac::reconciled(there, &self.object),
        }
    }
}

fn collection([group, version, resource]: [&str; 3], namespace: &str) -> String {
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    match namespace {
        "" => format!("{root}/{version}/{resource}"),
        namespace => format!("{root}/{version}/namespaces/{namespace}/{resource}"),
    }
}

/// The path of an object.
pub(crate) fn path_of(gvr: [&str; 3], namespace: &str, name: &str) -> String {
    format!("{}/{name}", collection(gvr, namespace))
}

/// The namespaces, created before the first answer in a fresh database.
pub(super) fn namespaces() -> Vec<BootstrapObject> {
    let namespaces =
        NAMESPACES.map(|name| BootstrapObject::new(NAMESPACE, json!({"metadata": {"name": name}})));
    namespaces.into()
}

/// Whether the objects of a resource are created after the first answer.
pub(super) fn is_created_later(group: &str, resource: &str) -> bool {
    CREATED_LATER.iter().any(|(of, which)| *of == group && (which.is_empty() || which.contains(&resource)))
}

/// The objects that are created after the first answer, those without roles first.
pub(super) fn remaining(address: Option<SocketAddr>, ranges: Ranges) -> Vec<BootstrapObject> {
    let classes = PRIORITY_CLASSES.map(|(name, value, description)| {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        BootstrapObject::new(["scheduling.k8s.io", "v1", "priorityclasses"], class)
    });
    let levels =
        priority_levels().map(|(name, spec)| flow_control("prioritylevelconfigurations", name, spec));
    let schemas = flow_schemas().map(|(name, spec)| flow_control("flowschemas", name, spec));
    let apis = APIS.map(|(version, group, group_priority, version_priority)| {
        api_service(version, group, group_priority, version_priority)
    });
    let services = services::objects(address, ranges);
    classes.into_iter().chain(levels).chain(schemas).chain(apis).chain(services).chain(roles()).collect()
}

fn roles() -> impl Iterator<Item = BootstrapObject> {
    rbac::bootstrap().into_iter().map(|Bootstrapped { resource, namespace, object }| {
        let first = BootstrapObject::new([rbac::GROUP, "v1", resource], object);
        BootstrapObject { namespace, update_policy: UpdatePolicy::Merge, ..first }
    })
}

fn api_service(version: &str, group: &str, group_priority: i64, version_priority: i64) -> BootstrapObject {
    let mut spec = json!({
        "version": version, "groupPriorityMinimum": group_priority, "versionPriority": version_priority,
    });
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    let labels = json!({"kube-aggregator.kubernetes.io/automanaged": "onstart"});
    let object = json!({"metadata": {"name": format!("{version}.{group}"), "labels": labels}, "spec": spec});
    BootstrapObject::new(["apiregistration.k8s.io", "v1", "apiservices"], object)
}

fn flow_control(resource: &'static str, name: &str, spec: Value) -> BootstrapObject {
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    BootstrapObject::new(["flowcontrol.apiserver.k8s.io", "v1", resource], object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_that_is_created_later_is_known() {
        let address = Some(SocketAddr::from(([192, 0, 2, 1], 6443)));
        for BootstrapObject { group, resource, .. } in remaining(address, Ranges::default()) {
            assert!(is_created_later(group, resource), "{resource}.{group}");
        }
        assert!(!namespaces().iter().any(|first| is_created_later(first.group, first.resource)));
        assert!(!is_created_later("", "pods"));
    }
}
