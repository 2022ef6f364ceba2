//! Every resource that a kube-apiserver 1.35 serves by default, as rows of data, in the order of its discovery documents.

/// Every verb.
const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const OBJECT: &[&str] = &["get", "patch", "update"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];
const STREAM: &[&str] = &["create", "get"];

/// A group version with its resources.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Empty for the core group.
    pub group: &'static str,
    /// For instance `v1`.
    pub version: &'static str,
    /// In the order of their plurals.
    pub resources: &'static [Row],
}

/// A resource.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// For instance `ConfigMap`; the singular name is the same in lower case.
    pub kind: &'static str,
    /// For instance `configmaps`.
    pub plural: &'static str,
    /// For instance `cm`.
    pub short_names: &'static [&'static str],
    /// For instance `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// The verbs that it supports.
    pub verbs: &'static [&'static str],
    /// Its subresources, sorted by name.
    pub subresources: &'static [SubresourceRow],
    /// Whether a DELETE responds with the deleted object instead of a `Status`.
    pub shows_deleted: bool,
    /// Group and version in which Kubernetes stores it, if not this one.
    pub stored_as: Option<(&'static str, &'static str)>,
}

/// A subresource.
#[derive(Clone, Copy, Debug)]
pub struct SubresourceRow {
    /// Its name in the path.
    pub name: &'static str,
    /// Group, version and kind of its request and response bodies; `None` for the object itself.
    pub kind: Option<(&'static str, &'static str, &'static str)>,
    /// The verbs that it supports.
    pub verbs: &'static [&'static str],
}

impl Row {
    const fn namespaced(kind: &'static str, plural: &'static str) -> Self {
        Self {
            kind,
            plural,
            short_names: &[],
            categories: &[],
            namespaced: true,
            verbs: ALL,
            subresources: &[],
            shows_deleted: false,
            stored_as: None,
        }
    }

    const fn cluster(kind: &'static str, plural: &'static str) -> Self {
        Self { namespaced: false, ..Self::namespaced(kind, plural) }
    }

    const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    const fn in_categories(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    const fn only(self, verbs: &'static [&'static str]) -> Self {
        Self { verbs, ..self }
    }

    const fn with(self, subresources: &'static [SubresourceRow]) -> Self {
        Self { subresources, ..self }
    }

    const fn showing_deleted(self) -> Self {
        Self { shows_deleted: true, ..self }
    }

    const fn stored_as(self, group: &'static str, version: &'static str) -> Self {
        Self { stored_as: Some((group, version)), ..self }
    }
}

/// A subresource with the kind of the object itself.
const fn subresource(name: &'static str, verbs: &'static [&'static str]) -> SubresourceRow {
    SubresourceRow { name, kind: None, verbs }
}

/// A subresource with bodies of another kind.
const fn subresource_of_kind(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> SubresourceRow {
    SubresourceRow { name, kind: Some((group, version, kind)), verbs }
}

const STATUS: SubresourceRow = subresource("status", OBJECT);
const SCALE: SubresourceRow = subresource_of_kind("scale", "autoscaling", "v1", "Scale", OBJECT);

const fn version(group: &'static str, version: &'static str, resources: &'static [Row]) -> Version {
    Version { group, version, resources }
}

/// Every group version.
pub const TABLE: &[Version] = &[
    version(
        "",
        "v1",
        &[
            Row::namespaced("Binding", "bindings").only(CREATE),
            Row::cluster("ComponentStatus", "componentstatuses").short(&["cs"]).only(&["get", "list"]),
            Row::namespaced("ConfigMap", "configmaps").short(&["cm"]),
            Row::namespaced("Endpoints", "endpoints").short(&["ep"]),
            Row::namespaced("Event", "events").short(&["ev"]),
            Row::namespaced("LimitRange", "limitranges").short(&["limits"]),
            Row::cluster("Namespace", "namespaces")
                .showing_deleted()
                .short(&["ns"])
                .only(&["create", "delete", "get", "list", "patch", "update", "watch"])
                .with(&[subresource("finalize", &["update"]), STATUS]),
            Row::cluster("Node", "nodes")
                .short(&["no"])
                .with(&[subresource_of_kind("proxy", "", "", "NodeProxyOptions", PROXY), STATUS]),
            Row::namespaced("PersistentVolumeClaim", "persistentvolumeclaims")
                .showing_deleted()
                .short(&["pvc"])
                .with(&[STATUS]),
            Row::cluster("PersistentVolume", "persistentvolumes")
                .showing_deleted()
                .short(&["pv"])
                .with(&[STATUS]),
            Row::namespaced("Pod", "pods").showing_deleted().short(&["po"]).in_categories(&["all"]).with(&[
                subresource_of_kind("attach", "", "", "PodAttachOptions", STREAM),
                subresource_of_kind("binding", "", "", "Binding", CREATE),
                subresource("ephemeralcontainers", OBJECT),
                subresource_of_kind("eviction", "policy", "v1", "Eviction", CREATE),
                subresource_of_kind("exec", "", "", "PodExecOptions", STREAM),
                subresource("log", &["get"]),
                subresource_of_kind("portforward", "", "", "PodPortForwardOptions", STREAM),
                subresource_of_kind("proxy", "", "", "PodProxyOptions", PROXY),
                subresource("resize", OBJECT),
                STATUS,
            ]),
            Row::namespaced("PodTemplate", "podtemplates").showing_deleted(),
            Row::namespaced("ReplicationController", "replicationcontrollers")
                .short(&["rc"])
                .in_categories(&["all"])
                .with(&[SCALE, STATUS]),
            Row::namespaced("ResourceQuota", "resourcequotas")
                .showing_deleted()
                .short(&["quota"])
                .with(&[STATUS]),
            Row::namespaced("Secret", "secrets"),
            Row::namespaced("ServiceAccount", "serviceaccounts")
                .showing_deleted()
                .short(&["sa"])
                .with(&[subresource_of_kind("token", "authentication.k8s.io", "v1", "TokenRequest", CREATE)]),
            Row::namespaced("Service", "services")
                .showing_deleted()
                .short(&["svc"])
                .in_categories(&["all"])
                .with(&[subresource_of_kind("proxy", "", "", "ServiceProxyOptions", PROXY), STATUS]),
        ],
    ),
    version(
        "apiregistration.k8s.io",
        "v1",
        &[Row::cluster("APIService", "apiservices").in_categories(&["api-extensions"]).with(&[STATUS])],
    ),
    version(
        "apps",
        "v1",
        &[
            Row::namespaced("ControllerRevision", "controllerrevisions"),
            Row::namespaced("DaemonSet", "daemonsets").short(&["ds"]).in_categories(&["all"]).with(&[STATUS]),
            Row::namespaced("Deployment", "deployments")
                .short(&["deploy"])
                .in_categories(&["all"])
                .with(&[SCALE, STATUS]),
            Row::namespaced("ReplicaSet", "replicasets")
                .short(&["rs"])
                .in_categories(&["all"])
                .with(&[SCALE, STATUS]),
            Row::namespaced("StatefulSet", "statefulsets")
                .short(&["sts"])
                .in_categories(&["all"])
                .with(&[SCALE, STATUS]),
        ],
    ),
    version("events.k8s.io", "v1", &[Row::namespaced("Event", "events").short(&["ev"]).stored_as("", "v1")]),
    version(
        "authentication.k8s.io",
        "v1",
        &[
            Row::cluster("SelfSubjectReview", "selfsubjectreviews").only(CREATE),
            Row::cluster("TokenReview", "tokenreviews").only(CREATE),
        ],
    ),
    version(
        "authorization.k8s.io",
        "v1",
        &[
            Row::namespaced("LocalSubjectAccessReview", "localsubjectaccessreviews").only(CREATE),
            Row::cluster("SelfSubjectAccessReview", "selfsubjectaccessreviews").only(CREATE),
            Row::cluster("SelfSubjectRulesReview", "selfsubjectrulesreviews").only(CREATE),
            Row::cluster("SubjectAccessReview", "subjectaccessreviews").only(CREATE),
        ],
    ),
    version(
        "autoscaling",
        "v2",
        &[Row::namespaced("HorizontalPodAutoscaler", "horizontalpodautoscalers")
            .short(&["hpa"])
            .in_categories(&["all"])
            .with(&[STATUS])],
    ),
    version(
        "autoscaling",
        "v1",
        &[Row::namespaced("HorizontalPodAutoscaler", "horizontalpodautoscalers")
            .short(&["hpa"])
            .in_categories(&["all"])
            .with(&[STATUS])
            .stored_as("autoscaling", "v2")],
    ),
    version(
        "batch",
        "v1",
        &[
            Row::namespaced("CronJob", "cronjobs").short(&["cj"]).in_categories(&["all"]).with(&[STATUS]),
            Row::namespaced("Job", "jobs").in_categories(&["all"]).with(&[STATUS]),
        ],
    ),
    version(
        "certificates.k8s.io",
        "v1",
        &[Row::cluster("CertificateSigningRequest", "certificatesigningrequests")
            .short(&["csr"])
            .with(&[subresource("approval", OBJECT), STATUS])],
    ),
    version(
        "networking.k8s.io",
        "v1",
        &[
            Row::cluster("IngressClass", "ingressclasses"),
            Row::namespaced("Ingress", "ingresses").short(&["ing"]).with(&[STATUS]),
            Row::cluster("IPAddress", "ipaddresses").short(&["ip"]),
            Row::namespaced("NetworkPolicy", "networkpolicies").short(&["netpol"]),
            Row::cluster("ServiceCIDR", "servicecidrs").with(&[STATUS]),
        ],
    ),
    version(
        "policy",
        "v1",
        &[Row::namespaced("PodDisruptionBudget", "poddisruptionbudgets").short(&["pdb"]).with(&[STATUS])],
    ),
    version(
        "rbac.authorization.k8s.io",
        "v1",
        &[
            Row::cluster("ClusterRoleBinding", "clusterrolebindings"),
            Row::cluster("ClusterRole", "clusterroles"),
            Row::namespaced("RoleBinding", "rolebindings"),
            Row::namespaced("Role", "roles"),
        ],
    ),
    version(
        "storage.k8s.io",
        "v1",
        &[
            Row::cluster("CSIDriver", "csidrivers").showing_deleted(),
            Row::cluster("CSINode", "csinodes").showing_deleted(),
            Row::namespaced("CSIStorageCapacity", "csistoragecapacities"),
            Row::cluster("StorageClass", "storageclasses").showing_deleted().short(&["sc"]),
            Row::cluster("VolumeAttachment", "volumeattachments").showing_deleted().with(&[STATUS]),
            Row::cluster("VolumeAttributesClass", "volumeattributesclasses")
                .showing_deleted()
                .short(&["vac"])
                .stored_as("storage.k8s.io", "v1beta1"),
        ],
    ),
    version(
        "admissionregistration.k8s.io",
        "v1",
        &[
            Row::cluster("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
                .in_categories(&["api-extensions"]),
            Row::cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
                .in_categories(&["api-extensions"])
                .with(&[STATUS]),
            Row::cluster("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
                .in_categories(&["api-extensions"]),
            Row::cluster("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
                .in_categories(&["api-extensions"]),
        ],
    ),
    version(
        "apiextensions.k8s.io",
        "v1",
        &[Row::cluster("CustomResourceDefinition", "customresourcedefinitions")
            .short(&["crd", "crds"])
            .in_categories(&["api-extensions"])
            .with(&[STATUS])
            .stored_as("apiextensions.k8s.io", "v1beta1")],
    ),
    version("scheduling.k8s.io", "v1", &[Row::cluster("PriorityClass", "priorityclasses").short(&["pc"])]),
    version("coordination.k8s.io", "v1", &[Row::namespaced("Lease", "leases")]),
    version("node.k8s.io", "v1", &[Row::cluster("RuntimeClass", "runtimeclasses")]),
    version("discovery.k8s.io", "v1", &[Row::namespaced("EndpointSlice", "endpointslices")]),
    version(
        "resource.k8s.io",
        "v1",
        &[
            Row::cluster("DeviceClass", "deviceclasses").showing_deleted(),
            Row::namespaced("ResourceClaim", "resourceclaims").showing_deleted().with(&[STATUS]),
            Row::namespaced("ResourceClaimTemplate", "resourceclaimtemplates").showing_deleted(),
            Row::cluster("ResourceSlice", "resourceslices").showing_deleted(),
        ],
    ),
    version(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        &[
            Row::cluster("FlowSchema", "flowschemas").with(&[STATUS]),
            Row::cluster("PriorityLevelConfiguration", "prioritylevelconfigurations").with(&[STATUS]),
        ],
    ),
];

/// Resources that are off by default: Kubernetes has them behind `--runtime-config` and a feature gate.
pub const ON_REQUEST: &[Version] = &[version(
    "admissionregistration.k8s.io",
    "v1beta1",
    &[
        Row::cluster("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
            .in_categories(&["api-extensions"]),
        Row::cluster("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
            .in_categories(&["api-extensions"]),
    ],
)];

/// The row of a kind.
pub fn row(group: &str, version: &str, kind: &str) -> Option<&'static Row> {
    let found = TABLE.iter().find(|entry| entry.group == group && entry.version == version)?;
    found.resources.iter().find(|row| row.kind == kind)
}
