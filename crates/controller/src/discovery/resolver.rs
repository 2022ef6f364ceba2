//! The resolver: from a kind or a resource that is known at run time to a client of its objects (client-go's RESTMapper).

use std::sync::{Arc, PoisonError, RwLock};

use kube::Client;
use kube::api::{GroupVersionKind, GroupVersionResource};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{Discovery, ServedResource};
use crate::{Error, Objects, Result};

/// Finds the resources of kinds by discovery. The answer is cached, and requested again when a kind is not in it: a CRD may have been
/// created meanwhile. Clones share the cache.
#[derive(Clone)]
pub struct Resolver(Arc<Shared>);

struct Shared {
    client: Client,
    known: RwLock<Known>,
    /// One request at a time: callers that miss a kind at the same time share its answer.
    fetch: Mutex<()>,
}

#[derive(Clone, Default)]
struct Known {
    discovery: Arc<Discovery>,
    /// The number of answers so far.
    generation: u64,
}

impl Resolver {
    /// A resolver that has not asked the server yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(Arc::new(Shared { client, known: RwLock::default(), fetch: Mutex::default() }))
    }

    /// The resource of a kind. Without a version, the preferred one.
    ///
    /// # Errors
    /// [`Error::NoKindMatch`] when the server does not serve the kind; when it does not answer.
    pub async fn kind(&self, of: &GroupVersionKind) -> Result<ServedResource> {
        let is_kind = |served: &ServedResource| {
            let resource = &served.resource;
            resource.group == of.group && resource.kind == of.kind && is_version(served, &of.version)
        };
        self.find(is_kind).await?.ok_or_else(|| no_match(&of.group, &of.version, &of.kind))
    }

    /// A resource by its plural name. Without a version, the preferred one.
    ///
    /// # Errors
    /// As [`Resolver::kind`].
    pub async fn resource(&self, of: &GroupVersionResource) -> Result<ServedResource> {
        let is_resource = |served: &ServedResource| {
            let resource = &served.resource;
            resource.group == of.group && resource.plural == of.resource && is_version(served, &of.version)
        };
        self.find(is_resource).await?.ok_or_else(|| no_match(&of.group, &of.version, &of.resource))
    }

    /// A client of the objects beside a manifest: of its kind, and of its namespace if the kind is namespaced.
    ///
    /// # Errors
    /// As [`Resolver::kind`]; when the manifest has no kind, or no namespace although it needs one.
    pub async fn objects_of(&self, manifest: &Value) -> Result<Objects> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
        let (Some(api_version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
            return Err(Error::other("a manifest needs apiVersion and kind"));
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let served = self.kind(&GroupVersionKind::gvk(group, version, kind)).await?;
        let namespace = text("/metadata/namespace").filter(|namespace| !namespace.is_empty());
        match (served.is_namespaced, namespace) {
            (true, None) => {
                Err(Error::other(format!("a manifest of the namespaced kind {kind} needs a namespace")))
            }
            (true, namespace) => Ok(Objects::new(&self.0.client, &served.resource, namespace)),
            (false, _) => Ok(Objects::new(&self.0.client, &served.resource, None)),
        }
    }

    /// Forgets the answer of the server, for instance after a request to a resolved resource was answered with 404.
    pub fn invalidate(&self) {
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        known.discovery = Arc::default();
    }

    async fn find(&self, is_wanted: impl Fn(&ServedResource) -> bool) -> Result<Option<ServedResource>> {
        let known = self.known();
        if let Some(found) = known.discovery.resources.iter().find(|served| is_wanted(served)) {
            return Ok(Some(found.clone()));
        }
        let newer = self.newer_than(known.generation).await?;
        Ok(newer.resources.iter().find(|served| is_wanted(served)).cloned())
    }

    fn known(&self) -> Known {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An answer that was requested after the one of a generation.
    async fn newer_than(&self, generation: u64) -> Result<Arc<Discovery>> {
        let _turn = self.0.fetch.lock().await;
        let known = self.known();
        if known.generation > generation {
            return Ok(known.discovery);
        }
        let discovery = Arc::new(Discovery::fetch(&self.0.client).await?);
        let newer = Known { discovery: Arc::clone(&discovery), generation: generation + 1 };
        *self.0.known.write().unwrap_or_else(PoisonError::into_inner) = newer;
        Ok(discovery)
    }
}

fn is_version(served: &ServedResource, version: &str) -> bool {
    if version.is_empty() { served.is_preferred } else { served.resource.version == version }
}

fn no_match(group: &str, version: &str, kind: &str) -> Error {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Error::NoKindMatch { api_version, kind: kind.to_owned() }
}
