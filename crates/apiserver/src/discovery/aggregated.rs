//! The aggregated form of discovery (v2): everything in one document.

use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::{Value, json};

use crate::registry::{Registry, ResourceType, Subresource};

/// What the client asks for and the answer says it is.
pub const CONTENT_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a client prefers this form to the old one.
pub fn wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let json = matches!(parts.next(), Some("application/json" | "*/*"));
        let parameters: Vec<&str> = parts.filter(|part| !part.starts_with("q=")).collect();
        if json
            && ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"]
                .iter()
                .all(|p| parameters.contains(p))
        {
            return true;
        }
        if json && parameters.is_empty() {
            return false;
        }
    }
    false
}

/// The document of the core group, or that of all others.
pub fn document(registry: &Registry, core: bool) -> Value {
    let groups = registry.groups();
    let groups = groups.iter().filter(|(name, _)| name.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions.iter().map(|v| version(registry, name, v)).collect();
            let metadata = if core { json!({}) } else { json!({ "name": name }) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn version(registry: &Registry, group: &str, version: &str) -> Value {
    let mut types: Vec<&ResourceType> = registry.of_version(group, version).collect();
    types.sort_by(|a, b| a.plural.cmp(&b.plural));
    let resources: Vec<Value> = types.into_iter().map(resource).collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn resource(resource_type: &ResourceType) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let own = || kind("", "", &resource_type.kind);
    let verbs: Vec<&str> = resource_type.verbs.iter().map(|verb| verb.as_str()).collect();
    let mut resource = json!({
        "resource": resource_type.plural,
        "responseKind": own(),
        "scope": if resource_type.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource_type.singular,
        "verbs": verbs,
    });
    if !resource_type.short_names.is_empty() {
        resource["shortNames"] = json!(resource_type.short_names);
    }
    if !resource_type.categories.is_empty() {
        resource["categories"] = json!(resource_type.categories);
    }
    let subresources: Vec<Value> = resource_type
        .subresources
        .iter()
        .map(|Subresource { name, kind: of, verbs }| {
            let verbs: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
            let of = of.as_ref().map_or_else(own, |(group, version, name)| kind(group, version, name));
            json!({"subresource": name, "responseKind": of, "verbs": verbs})
        })
        .collect();
    if !subresources.is_empty() {
        resource["subresources"] = subresources.into();
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_stands_first_is_wanted() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        for (accept, expected) in [
            (format!("{v2},{v2beta1},application/json"), true),
            (format!("{v2beta1},application/json"), false),
            ("application/json".to_owned(), false),
            (format!("application/json,{v2}"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(wanted(&headers), expected, "{accept}");
        }
    }
}
