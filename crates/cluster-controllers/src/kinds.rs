//! The resources that the controllers read and write.

use controller::ResourceKind;

const fn core(kind: &'static str, plural: &'static str) -> ResourceKind {
    ResourceKind { group: "", version: "v1", kind, plural }
}

pub(super) const CLAIMS: ResourceKind = core("PersistentVolumeClaim", "persistentvolumeclaims");
pub(super) const CLUSTER_ROLES: ResourceKind = ResourceKind {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "ClusterRole",
    plural: "clusterroles",
};
pub(super) const CONFIG_MAPS: ResourceKind = core("ConfigMap", "configmaps");
pub(super) const CRDS: ResourceKind = ResourceKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
pub(super) const EVENTS: ResourceKind = core("Event", "events");
pub(super) const JOBS: ResourceKind =
    ResourceKind { group: "batch", version: "v1", kind: "Job", plural: "jobs" };
pub(super) const NAMESPACES: ResourceKind = core("Namespace", "namespaces");
pub(super) const PODS: ResourceKind = core("Pod", "pods");
pub(super) const QUOTAS: ResourceKind = core("ResourceQuota", "resourcequotas");
pub(super) const SECRETS: ResourceKind = core("Secret", "secrets");
pub(super) const SERVICES: ResourceKind = core("Service", "services");
pub(super) const SERVICE_ACCOUNTS: ResourceKind = core("ServiceAccount", "serviceaccounts");
pub(super) const SIGNING_REQUESTS: ResourceKind = ResourceKind {
    group: "certificates.k8s.io",
    version: "v1",
    kind: "CertificateSigningRequest",
    plural: "certificatesigningrequests",
};
pub(super) const VOLUMES: ResourceKind = core("PersistentVolume", "persistentvolumes");
