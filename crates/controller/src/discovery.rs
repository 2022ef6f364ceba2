//! Which types a server has, for controllers that look after all of them.

use std::collections::{BTreeMap, HashSet};

use kube::Client;
use kube::api::ApiResource;
use serde::Deserialize;

use crate::{Result, objects};

const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A type that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedType {
    /// Its names.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// What it offers, such as `list`.
    pub verbs: Vec<String>,
    /// Whether its objects have a number of replicas as a part of their own.
    pub has_scale: bool,
    /// Whether this is the version to use, of those that it has.
    pub is_preferred: bool,
}

impl ServedType {
    /// Whether it offers all of these verbs.
    #[must_use]
    pub fn offers(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|offered| offered == verb))
    }

    /// The path of its collection, in a namespace or in all.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        objects::path(&self.resource, namespace)
    }
}

/// All types of a server, each in all its versions.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// The types, in the server's order.
    pub types: Vec<ServedType>,
    /// The groups with versions whose own server does not say what it has: `metrics.k8s.io/v1beta1`, and why.
    pub failures: BTreeMap<String, String>,
}

impl Served {
    /// Asks the server.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn ask(client: &Client) -> Result<Self> {
        let mut served = Self::default();
        for root in ["/api", "/apis"] {
            let request = http::Request::get(root).header(http::header::ACCEPT, ACCEPT).body(Vec::new());
            let groups: Groups = client.request(request.map_err(crate::Error::other)?).await?;
            groups.items.into_iter().for_each(|group| served.add(group));
        }
        Ok(served)
    }

    /// The types in the versions to use.
    pub fn preferred(&self) -> impl Iterator<Item = &ServedType> {
        self.types.iter().filter(|served| served.is_preferred)
    }

    /// The type of a kind in a version such as `apps/v1`.
    #[must_use]
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&ServedType> {
        self.types.iter().find(|of| of.resource.kind == kind && of.resource.api_version == api_version)
    }

    fn add(&mut self, Group { metadata: Named { name: group }, versions }: Group) {
        let mut known = HashSet::new();
        for Version { version, resources, freshness } in versions {
            let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
            if freshness == "Stale" {
                let reason = format!("stale GroupVersion discovery: {api_version}");
                self.failures.insert(api_version.clone(), reason);
            }
            for Resource { resource: plural, response_kind, scope, verbs, subresources } in resources {
                self.types.push(ServedType {
                    is_preferred: known.insert(plural.clone()),
                    has_scale: subresources.iter().any(|part| part.subresource == "scale"),
                    resource: ApiResource {
                        group: group.clone(),
                        version: version.clone(),
                        api_version: api_version.clone(),
                        kind: response_kind.kind,
                        plural,
                    },
                    is_namespaced: scope == "Namespaced",
                    verbs,
                });
            }
        }
    }
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    #[serde(default)]
    response_kind: ResponseKind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

#[derive(Default, Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}
