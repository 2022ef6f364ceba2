//! CustomResourceDefinitions, and the registry of their types.
//!
//! One informer watches the stored CRDs and alone changes the registry, in the order of the log. A write or read of a CRD
//! returns when the informer has seen it, so that the kind is served by then.

mod apiservices;
pub(crate) mod conditions;
mod finalizer;
mod registration;
pub(crate) mod selectable_fields;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use model::Revision;
use model::error::Error;
use tokio::time::timeout;

pub(crate) use finalizer::run_controller;
pub(crate) use registration::{resource, start_registration};
pub(crate) use selectable_fields::run_indexer;

use crate::informer::{Position, Reached};
use crate::registry::{Crd, Registry};

/// The longest wait of a request for the registry.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The current registry, and the position of the CRD informer.
pub(crate) struct Catalog {
    registry: RwLock<Arc<Registry>>,
    /// The position of the CRD informer.
    pub position: Position,
}

impl Catalog {
    /// Without CRDs.
    pub fn new(registry: Registry) -> Self {
        Self { registry: RwLock::new(Arc::new(registry)), position: Position::default() }
    }

    /// The current resource types.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, registry: Registry) {
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// Waits until the registry has another revision of this CRD, or none.
    pub async fn wait_until_replaced(&self, from: &Crd) -> Result<(), Error> {
        let mut changes = self.position.changes();
        let has_moved = |_: &Reached| {
            let registry = self.registry();
            registry.crd(&from.group, &from.plural).is_none_or(|crd| crd.revision != from.revision)
        };
        match timeout(TIMEOUT, changes.wait_for(has_moved)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::DefinitionChanged),
        }
    }

    /// Waits until the registry has all of these revisions: a client may use the CRDs that it sees.
    pub async fn wait_for_all(&self, revisions: impl Iterator<Item = Revision>) {
        if let Some(last) = revisions.max() {
            self.wait_for(last).await;
        }
    }

    /// Waits until the registry has this revision. On timeout the reader gets the CRD anyway.
    pub async fn wait_for(&self, revision: Revision) {
        if self.position.wait_for(revision).await.is_err() {
            tracing::warn!(%revision, "CRD informer is behind; returning a CRD whose kind is not served yet");
        }
    }
}
