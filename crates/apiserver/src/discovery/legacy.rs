//! The old form of discovery: a list of groups, and a document per group version.

use serde_json::{Value, json};

use super::storage_version_hash;
use crate::registry::{Registry, ResourceType, Subresource};

/// `/api`
pub fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/apis`
pub fn groups(registry: &Registry) -> Value {
    let groups = registry.groups();
    let groups: Vec<Value> = groups
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, versions)| entry(name, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`
pub fn group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = registry.groups();
    let (name, versions) = groups.iter().find(|(group, _)| *group == name && !group.is_empty())?;
    let mut group = entry(name, versions);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

/// `/api/VERSION` and `/apis/GROUP/VERSION`
pub fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut types: Vec<&ResourceType> = registry.of_version(group, version).collect();
    if types.is_empty() {
        return None;
    }
    types.sort_by(|a, b| a.plural.cmp(&b.plural));
    let group_version = types[0].api_version();
    let resources: Vec<Value> = types.into_iter().flat_map(resource).collect();
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    // The core group's document is older than this field.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

fn entry(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// A resource and its subresources.
fn resource(resource_type: &ResourceType) -> Vec<Value> {
    let ResourceType { kind, plural, singular, namespaced, .. } = resource_type;
    let verbs: Vec<&str> = resource_type.verbs.iter().map(|verb| verb.as_str()).collect();
    let mut main = json!({
        "name": plural,
        "singularName": singular,
        "namespaced": namespaced,
        "kind": kind,
        "verbs": verbs,
    });
    if resource_type.review.is_none() {
        main["storageVersionHash"] = stored_version(resource_type).into();
    }
    if !resource_type.short_names.is_empty() {
        main["shortNames"] = json!(resource_type.short_names);
    }
    if !resource_type.categories.is_empty() {
        main["categories"] = json!(resource_type.categories);
    }
    let mut all = vec![main];
    all.extend(resource_type.subresources.iter().map(|Subresource { name, kind: of, verbs }| {
        let verbs: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
        let (group, version, kind) = match of {
            Some((group, version, kind)) => (group.as_str(), version.as_str(), kind),
            None => ("", "", kind),
        };
        let mut entry = json!({
            "name": format!("{plural}/{name}"),
            "singularName": "",
            "namespaced": namespaced,
            "kind": kind,
            "verbs": verbs,
        });
        if !version.is_empty() {
            entry["group"] = group.into();
            entry["version"] = version.into();
        }
        entry
    }));
    all
}

fn stored_version(resource_type: &ResourceType) -> String {
    let ResourceType { group, version, kind, .. } = resource_type;
    match &resource_type.stored_as {
        Some(stored) => storage_version_hash(&stored.group, &stored.version, kind),
        None => storage_version_hash(group, version, kind),
    }
}
