//! The types that the controllers read and write.

use crate::Kind;

const fn core(kind: &'static str, plural: &'static str) -> Kind {
    Kind { group: "", version: "v1", kind, plural }
}

pub(super) const CLAIMS: Kind = core("PersistentVolumeClaim", "persistentvolumeclaims");
pub(super) const CLUSTER_ROLES: Kind =
    Kind { group: "rbac.authorization.k8s.io", version: "v1", kind: "ClusterRole", plural: "clusterroles" };
pub(super) const CONFIG_MAPS: Kind = core("ConfigMap", "configmaps");
pub(super) const DEFINITIONS: Kind = Kind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
pub(super) const EVENTS: Kind = core("Event", "events");
pub(super) const JOBS: Kind = Kind { group: "batch", version: "v1", kind: "Job", plural: "jobs" };
pub(super) const NAMESPACES: Kind = core("Namespace", "namespaces");
pub(super) const PODS: Kind = core("Pod", "pods");
pub(super) const QUOTAS: Kind = core("ResourceQuota", "resourcequotas");
pub(super) const SECRETS: Kind = core("Secret", "secrets");
pub(super) const SERVICES: Kind = core("Service", "services");
pub(super) const SERVICE_ACCOUNTS: Kind = core("ServiceAccount", "serviceaccounts");
pub(super) const SIGNING_REQUESTS: Kind = Kind {
    group: "certificates.k8s.io",
    version: "v1",
    kind: "CertificateSigningRequest",
    plural: "certificatesigningrequests",
};
pub(super) const VOLUMES: Kind = core("PersistentVolume", "persistentvolumes");
