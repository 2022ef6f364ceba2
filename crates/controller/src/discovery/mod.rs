//! Discovery: the resources that a server serves, and the resolver of kinds that are known at run time only.

mod document;
mod resolver;

use std::collections::{BTreeMap, HashSet};

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::ApiResource;
use serde::de::DeserializeOwned;

use self::document::{ApiGroupList, ApiResourceList, ApiVersions, Group, Groups, Named, Version};
pub use self::resolver::Resolver;
use crate::{Error, Result, objects};

/// Aggregated discovery; a server that has none answers with the older form.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/// The documents of the older form that are requested at the same time.
const AT_ONCE: usize = 8;

/// A resource that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResource {
    /// Its group, version, kind and plural name.
    pub resource: ApiResource,
    /// Whether its objects are namespaced.
    pub is_namespaced: bool,
    /// Its verbs, such as `list`.
    pub verbs: Vec<String>,
    /// Whether it has the subresource `scale`.
    pub has_scale: bool,
    /// Whether it has the subresource `status`.
    pub has_status: bool,
    /// Whether this is the preferred version of the resource.
    pub is_preferred: bool,
}

impl ServedResource {
    /// Whether the resource supports all of these verbs.
    #[must_use]
    pub fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|supported| supported == verb))
    }

    /// The path of the collection, in a namespace or in all.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        objects::path(&self.resource, namespace)
    }
}

/// All resources of a server, each in all its versions.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The resources, in the server's order.
    pub resources: Vec<ServedResource>,
    /// The groups and versions whose aggregated server does not answer, such as `metrics.k8s.io/v1beta1`, with the reason.
    pub failures: BTreeMap<String, String>,
}

impl Discovery {
    /// Asks the server.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn fetch(client: &Client) -> Result<Self> {
        let mut discovery = Self::default();
        for root in ["/api", "/apis"] {
            let groups: Groups = get(client, root).await?;
            let groups = match groups.kind.as_str() {
                "APIGroupDiscoveryList" => groups.items,
                _ => legacy(client, root).await?,
            };
            groups.into_iter().for_each(|group| discovery.add(group));
        }
        Ok(discovery)
    }

    /// The resources in their preferred versions.
    pub fn preferred(&self) -> impl Iterator<Item = &ServedResource> {
        self.resources.iter().filter(|served| served.is_preferred)
    }

    /// The resource of a kind in a version such as `apps/v1`.
    #[must_use]
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&ServedResource> {
        self.resources.iter().find(|of| of.resource.kind == kind && of.resource.api_version == api_version)
    }

    fn add(&mut self, Group { metadata: Named { name: group }, versions }: Group) {
        let mut known = HashSet::new();
        for Version { version, resources, freshness } in versions {
            let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
            if freshness == "Stale" {
                let reason = format!("stale GroupVersion discovery: {api_version}");
                self.failures.insert(api_version.clone(), reason);
            }
            for resource in resources {
                let has = |name: &str| resource.subresources.iter().any(|part| part.subresource == name);
                self.resources.push(ServedResource {
                    is_preferred: known.insert(resource.resource.clone()),
                    has_scale: has("scale"),
                    has_status: has("status"),
                    resource: ApiResource {
                        group: group.clone(),
                        version: version.clone(),
                        api_version: api_version.clone(),
                        kind: resource.response_kind.kind,
                        plural: resource.resource,
                    },
                    is_namespaced: resource.scope == "Namespaced",
                    verbs: resource.verbs,
                });
            }
        }
    }
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T> {
    let request = http::Request::get(path).header(http::header::ACCEPT, ACCEPT).body(Vec::new());
    Ok(client.request(request.map_err(Error::other)?).await?)
}

/// The groups of a server without aggregated discovery: a document per group and version.
async fn legacy(client: &Client, root: &str) -> Result<Vec<Group>> {
    if root == "/api" {
        let ApiVersions { versions } = get(client, root).await?;
        return Ok(vec![group(client, String::new(), versions).await?]);
    }
    let ApiGroupList { groups } = get(client, root).await?;
    let groups = groups.into_iter().map(|of| {
        let versions = of.versions();
        group(client, of.name, versions)
    });
    stream::iter(groups.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await
}

async fn group(client: &Client, name: String, versions: Vec<String>) -> Result<Group> {
    let base = if name.is_empty() { "/api".to_owned() } else { format!("/apis/{name}") };
    let mut group = Group { metadata: Named { name }, versions: Vec::new() };
    for version in versions {
        group.versions.push(match get::<ApiResourceList>(client, &format!("{base}/{version}")).await {
            Ok(list) => list.into_version(version),
            // The server of an aggregated API does not answer; that of the others does.
            Err(error) if error.code() >= 500 || error.is_not_found() => Version::stale(version),
            Err(error) => return Err(error),
        });
    }
    Ok(group)
}

#[cfg(test)]
mod tests;
