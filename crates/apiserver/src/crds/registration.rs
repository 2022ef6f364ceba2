//! The CRD informer: registers the types of stored CRDs.

use std::sync::Arc;

use model::Resource;
use store::{Event, EventKind, Store, Stored};

use super::Catalog;
use crate::informer::{Index, Informer};
use crate::registry::Registry;
use crate::registry::custom::ParsedCrd;
use crate::webhook::Services;

/// The resource of CRDs.
pub(crate) fn resource() -> Resource {
    Resource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Fills the registry, and returns the task that keeps it current until dropped.
pub(crate) async fn start_registration(
    store: &Store,
    catalog: Arc<Catalog>,
) -> Result<impl Future<Output = ()> + Send + use<>, store::Error> {
    let position = catalog.position.clone();
    let index = CrdIndex { catalog, services: Services::of(store) };
    Informer::new(resource(), index, position).start(store).await
}

struct CrdIndex {
    catalog: Arc<Catalog>,
    services: Services,
}

impl CrdIndex {
    fn register(&self, registry: &mut Registry, stored: &Stored) {
        match ParsedCrd::new(stored.uid.clone(), stored.revision, &stored.value, &self.services) {
            Some(read) => registry.add_crd(read),
            None => tracing::error!(key = %stored.key, "cannot parse a stored CRD"),
        }
    }
}

impl Index for CrdIndex {
    type Fresh = Vec<Stored>;

    fn gather(&self, fresh: &mut Vec<Stored>, object: Stored) {
        fresh.push(object);
    }

    fn reset(&self, fresh: Vec<Stored>) {
        let mut registry = Registry::clone(&self.catalog.registry());
        let mut gone: Vec<String> = registry.all_crds().map(|crd| crd.name()).collect();
        for item in &fresh {
            gone.retain(|name| *name != item.key.name);
            self.register(&mut registry, item);
        }
        gone.iter().for_each(|name| registry.remove_crd(name));
        self.catalog.replace(registry);
    }

    fn apply(&self, events: &[Event]) {
        let mut registry = Registry::clone(&self.catalog.registry());
        for event in events {
            let change = &event.change;
            if event.kind == EventKind::Deleted {
                registry.remove_crd(&change.key.name);
            } else if let Some(read) =
                ParsedCrd::new(change.uid.clone(), change.revision, &change.value, &self.services)
            {
                registry.add_crd(read);
            }
        }
        self.catalog.replace(registry);
    }
}
