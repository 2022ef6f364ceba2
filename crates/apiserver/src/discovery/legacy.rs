//! Legacy discovery: a list of groups, and a document per group version. Fields have the order of Kubernetes, because scripts
//! grep for them.

use serde::Serialize;

use super::{storage_version_hash, verbs, verbs_of};
use crate::registry::{Registry, ResourceType, Subresource};

/// `/api`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreVersions {
    kind: &'static str,
    versions: [&'static str; 1],
    // Always empty: the server does not know its external address.
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_addresses: [(); 0],
}

/// `/apis`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Groups<'a> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<Group<'a>>,
}

/// `/apis/GROUP`, and an entry of `/apis`, which has no kind
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<GroupVersion<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_version: Option<GroupVersion<'a>>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion<'a> {
    group_version: String,
    version: &'a str,
}

/// `/api/VERSION` and `/apis/GROUP/VERSION`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<Resource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

/// The versions of the core group.
pub fn core_versions() -> CoreVersions {
    CoreVersions { kind: "APIVersions", versions: ["v1"], server_addresses: [] }
}

/// All groups except the core group.
pub fn groups(registry: &Registry) -> Groups<'_> {
    let groups = registry.groups().into_iter().filter(|(name, _)| !name.is_empty());
    let groups = groups.map(|(name, versions)| entry(name, &versions)).collect();
    Groups { kind: "APIGroupList", api_version: "v1", groups }
}

/// One group; `None` if it has no types.
pub fn group<'a>(registry: &'a Registry, name: &str) -> Option<Group<'a>> {
    let groups = registry.groups();
    let (name, versions) = groups.into_iter().find(|(group, _)| *group == name && !group.is_empty())?;
    Some(Group { kind: Some("APIGroup"), api_version: Some("v1"), ..entry(name, &versions) })
}

/// The resources of a group version; `None` if it has none.
pub fn resources<'a>(registry: &'a Registry, group: &'a str, version: &'a str) -> Option<Resources<'a>> {
    let mut types: Vec<&ResourceType> = registry.of_version(group, version).collect();
    types.sort_by(|a, b| a.plural.cmp(&b.plural));
    let group_version = types.first()?.api_version();
    // The document of the core group omits this field.
    let api_version = (!group.is_empty()).then_some("v1");
    let resources = types.into_iter().flat_map(resource).collect();
    Some(Resources { kind: "APIResourceList", api_version, group_version, resources })
}

fn entry<'a>(name: &'a str, versions: &[&'a str]) -> Group<'a> {
    let versions: Vec<_> = versions
        .iter()
        .map(|version| GroupVersion { group_version: format!("{name}/{version}"), version })
        .collect();
    Group { kind: None, api_version: None, name, preferred_version: versions.first().cloned(), versions }
}

/// A resource and its subresources.
fn resource(of: &ResourceType) -> impl Iterator<Item = Resource<'_>> {
    let main = Resource {
        name: of.plural.clone(),
        singular_name: &of.singular,
        namespaced: of.namespaced,
        group: "",
        version: "",
        kind: &of.kind,
        verbs: verbs_of(of),
        short_names: &of.short_names,
        categories: &of.categories,
        storage_version_hash: of.is_stored().then(|| stored_version(of)),
    };
    std::iter::once(main).chain(of.subresources.iter().map(|entry| subresource(of, entry)))
}

fn subresource<'a>(of: &'a ResourceType, entry: &'a Subresource) -> Resource<'a> {
    let (group, version, kind) = entry
        .kind
        .as_ref()
        .map_or(("", "", &of.kind), |(group, version, kind)| (group.as_str(), version.as_str(), kind));
    Resource {
        name: format!("{}/{}", of.plural, entry.name),
        singular_name: "",
        namespaced: of.namespaced,
        group,
        version,
        kind,
        verbs: verbs(entry.verbs),
        short_names: &[],
        categories: &[],
        storage_version_hash: None,
    }
}

fn stored_version(of: &ResourceType) -> String {
    match &of.stored_as {
        Some(stored) => storage_version_hash(&stored.group, &stored.version, &of.kind),
        None => storage_version_hash(&of.group, &of.version, &of.kind),
    }
}
