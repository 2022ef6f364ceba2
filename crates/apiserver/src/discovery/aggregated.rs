//! Aggregated discovery (v2): all groups in one document.

use http::HeaderMap;
use serde::Serialize;

use super::{verbs, verbs_of};
use crate::registry::{Registry, ResourceType, Subresource};
use crate::request::negotiate::{Encoding, clauses};

/// The parameters of the media type.
const PARAMETERS: [(&str, &str); 3] =
    [("g", "apidiscovery.k8s.io"), ("v", "v2"), ("as", "APIGroupDiscoveryList")];

/// The content type of the response.
pub fn content_type(encoding: Encoding) -> String {
    let parameters = PARAMETERS.map(|(key, value)| format!(";{key}={value}"));
    format!("{}{}", encoding.media_type(), parameters.concat())
}

/// The encoding of the aggregated form, if the client prefers it to the legacy one.
pub fn wanted(headers: &HeaderMap) -> Option<Encoding> {
    for clause in clauses(headers) {
        let Some(encoding) = clause.encoding() else { continue };
        if PARAMETERS.iter().all(|(key, value)| clause.parameter(key) == *value) {
            return Some(encoding);
        }
        if !clause.converts() {
            return None;
        }
    }
    None
}

/// The document of the core group, or of all other groups.
pub fn document(registry: &Registry, core: bool) -> DiscoveryDocument<'_> {
    let groups = registry.groups().into_iter().filter(|(name, _)| name.is_empty() == core);
    let items = groups.map(|(name, versions)| Group {
        metadata: Metadata { name },
        versions: versions.iter().map(|v| version(registry, name, v)).collect(),
    });
    DiscoveryDocument {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata { name: "" },
        items: items.collect(),
    }
}

/// APIGroupDiscoveryList, in the field order of Kubernetes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveryDocument<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<Group<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    metadata: Metadata<'a>,
    versions: Vec<Version<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct Version<'a> {
    version: &'a str,
    resources: Vec<Resource<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    resource: &'a str,
    response_kind: GroupVersionKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceEntry<'a>>,
}

#[derive(Serialize)]
struct GroupVersionKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceEntry<'a> {
    subresource: &'a str,
    response_kind: GroupVersionKind<'a>,
    verbs: Vec<&'static str>,
}

fn version<'a>(registry: &'a Registry, group: &'a str, version: &'a str) -> Version<'a> {
    let mut types: Vec<&ResourceType> = registry.of_version(group, version).collect();
    types.sort_by(|a, b| a.plural.cmp(&b.plural));
    Version { version, resources: types.into_iter().map(resource).collect(), freshness: "Current" }
}

fn resource(of: &ResourceType) -> Resource<'_> {
    Resource {
        resource: &of.plural,
        response_kind: own_kind(of),
        scope: if of.namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &of.singular,
        verbs: verbs_of(of),
        short_names: &of.short_names,
        categories: &of.categories,
        subresources: of.subresources.iter().map(|entry| subresource(of, entry)).collect(),
    }
}

/// The response kind; built-in types omit group and version.
fn own_kind(of: &ResourceType) -> GroupVersionKind<'_> {
    let (group, version) = if of.custom.is_some() { (&*of.group, &*of.version) } else { ("", "") };
    GroupVersionKind { group, version, kind: &of.kind }
}

fn subresource<'a>(of: &'a ResourceType, entry: &'a Subresource) -> SubresourceEntry<'a> {
    let other = entry.kind.as_ref().map(|(group, version, kind)| GroupVersionKind { group, version, kind });
    let response_kind = other.unwrap_or_else(|| own_kind(of));
    SubresourceEntry { subresource: &entry.name, response_kind, verbs: verbs(entry.verbs) }
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

    use super::*;

    #[test]
    fn the_first_accepted_form_is_chosen() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        let protobuf = v2.replace("json", "vnd.kubernetes.protobuf");
        for (accept, expected) in [
            (format!("{v2},{v2beta1},application/json"), Some(Encoding::Json)),
            (format!("{protobuf},{v2}"), Some(Encoding::Protobuf)),
            (format!("{v2};q=0.5,{protobuf};q=0.9"), Some(Encoding::Protobuf)),
            (format!("{v2beta1},application/json"), None),
            ("application/json".to_owned(), None),
            (String::new(), None),
            (format!("application/json,{v2}"), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(wanted(&headers), expected, "{accept}");
        }
    }
}
