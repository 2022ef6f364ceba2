//! The documents of discovery: the aggregated form (`APIGroupDiscoveryList`), and the older one with a document per group and version.

use serde::Deserialize;

/// The answer to `/api` and `/apis`, in the aggregated form if its kind says so.
#[derive(Deserialize)]
pub(super) struct Groups {
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) items: Vec<Group>,
}

#[derive(Deserialize)]
pub(super) struct Group {
    #[serde(default)]
    pub(super) metadata: Named,
    #[serde(default)]
    pub(super) versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
pub(super) struct Named {
    #[serde(default)]
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct Version {
    pub(super) version: String,
    #[serde(default)]
    pub(super) resources: Vec<Resource>,
    #[serde(default)]
    pub(super) freshness: String,
}

impl Version {
    /// A version whose resources are unknown.
    pub(super) fn stale(version: String) -> Self {
        Self { version, resources: Vec::new(), freshness: "Stale".to_owned() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) response_kind: ResponseKind,
    #[serde(default)]
    pub(super) scope: String,
    #[serde(default)]
    pub(super) verbs: Vec<String>,
    #[serde(default)]
    pub(super) subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
pub(super) struct Subresource {
    pub(super) subresource: String,
}

#[derive(Default, Deserialize)]
pub(super) struct ResponseKind {
    #[serde(default)]
    pub(super) kind: String,
}

/// The older answer to `/api`.
#[derive(Deserialize)]
pub(super) struct ApiVersions {
    #[serde(default)]
    pub(super) versions: Vec<String>,
}

/// The older answer to `/apis`.
#[derive(Deserialize)]
pub(super) struct ApiGroupList {
    #[serde(default)]
    pub(super) groups: Vec<ApiGroup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroup {
    pub(super) name: String,
    #[serde(default)]
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Clone, Deserialize, PartialEq)]
struct GroupVersion {
    version: String,
}

impl ApiGroup {
    /// The versions, the preferred one first.
    pub(super) fn versions(&self) -> Vec<String> {
        let others = self.versions.iter().filter(|version| Some(*version) != self.preferred_version.as_ref());
        self.preferred_version.iter().chain(others).map(|version| version.version.clone()).collect()
    }
}

/// The older document of one group and version: resources, and subresources as `pods/status` beside them.
#[derive(Deserialize)]
pub(super) struct ApiResourceList {
    #[serde(default)]
    resources: Vec<LegacyResource>,
}

#[derive(Deserialize)]
struct LegacyResource {
    name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
}

impl ApiResourceList {
    pub(super) fn into_version(self, version: String) -> Version {
        let (parts, whole): (Vec<_>, Vec<_>) =
            self.resources.into_iter().partition(|resource| resource.name.contains('/'));
        let resources = whole.into_iter().map(|LegacyResource { name, namespaced, kind, verbs }| {
            let subresources =
                parts.iter().filter_map(|part| part.name.strip_prefix(&name)?.strip_prefix('/'));
            let subresources =
                subresources.map(|part| Subresource { subresource: part.to_owned() }).collect();
            let scope = if namespaced { "Namespaced" } else { "Cluster" }.to_owned();
            Resource { resource: name, response_kind: ResponseKind { kind }, scope, verbs, subresources }
        });
        Version { version, resources: resources.collect(), freshness: String::new() }
    }
}
