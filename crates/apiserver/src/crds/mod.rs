//! The CRDs of custom resources, and how the registry follows them.
//!
//! One task per server watches the stored CRDs and is the only one that changes the registry, in the order of the log.
//! Whoever writes or reads a CRD waits until that task has seen it: the answer comes when the kind is served.

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

/// How long a request waits for the registry.
const PATIENCE: Duration = Duration::from_secs(10);

/// The registry as it is now, and up to which revision it has followed the CRDs.
pub(crate) struct Catalog {
    registry: RwLock<Arc<Registry>>,
    /// Of the CRD informer.
    pub position: Position,
}

impl Catalog {
    /// Of a registry that knows no CRD yet.
    pub fn new(registry: Registry) -> Self {
        Self { registry: RwLock::new(Arc::new(registry)), position: Position::default() }
    }

    /// The resource types as they are now.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, registry: Registry) {
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// Waits until the registry has another CRD than this, or none.
    pub async fn wait_until_replaced(&self, from: &Crd) -> Result<(), Error> {
        let mut changes = self.position.changes();
        let has_moved = |_: &Reached| {
            let registry = self.registry();
            registry.crd(&from.group, &from.plural).is_none_or(|crd| crd.revision != from.revision)
        };
        match timeout(PATIENCE, changes.wait_for(has_moved)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::DefinitionChanged),
        }
    }

    /// Waits until the registry has followed all of these CRDs: what a client sees of them it may use.
    pub async fn wait_for_all(&self, revisions: impl Iterator<Item = Revision>) {
        if let Some(last) = revisions.max() {
            self.wait_for(last).await;
        }
    }

    /// Waits until the registry has followed the CRDs up to this revision. What is stored is shown to a reader in any case.
    pub async fn wait_for(&self, revision: Revision) {
        if self.position.wait_for(revision).await.is_err() {
            tracing::warn!(%revision, "the CRD informer is behind; a CRD is shown that is not served yet");
        }
    }
}
