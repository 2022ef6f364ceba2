//! The definitions of custom resources, and how the registry follows them.
//!
//! One task per server watches the stored definitions and is the only one that changes the registry, in the order of the log.
//! Whoever writes a definition waits until that task has seen the write: the answer comes when the kind is served.

pub(crate) mod conditions;
mod ending;
mod follow;

use std::sync::{Arc, PoisonError, RwLock};

use model::Revision;
use model::error::Error;
use tokio::sync::watch;

pub(crate) use ending::look_after;
pub(crate) use follow::follow;

use crate::registry::{Definition, Registry};

/// The registry as it is now, and up to which revision it has followed the definitions.
pub(crate) struct Catalog {
    registry: RwLock<Arc<Registry>>,
    reached: watch::Receiver<Revision>,
}

impl Catalog {
    /// Of a registry that knows no definition yet, with what its follower moves on.
    pub fn new(registry: Registry) -> (Self, watch::Sender<Revision>) {
        let (position, reached) = watch::channel(Revision::ZERO);
        (Self { registry: RwLock::new(Arc::new(registry)), reached }, position)
    }

    /// Rings when the registry has changed.
    pub fn changes(&self) -> watch::Receiver<Revision> {
        self.reached.clone()
    }

    /// The resource types as they are now.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, registry: Registry) {
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// Waits until the registry has another definition than this, or none.
    pub async fn moves_on(&self, from: &Definition) -> Result<(), Error> {
        let mut reached = self.reached.clone();
        let has_moved = |_: &Revision| {
            let registry = self.registry();
            registry
                .definition(&from.group, &from.plural)
                .is_none_or(|definition| definition.revision != from.revision)
        };
        let moved = reached.wait_for(has_moved).await;
        moved.map(drop).map_err(|_| ended())
    }

    /// Waits until the registry has followed the definitions up to this revision.
    pub async fn follows(&self, revision: Revision) -> Result<(), Error> {
        let mut reached = self.reached.clone();
        let reached = reached.wait_for(|reached| *reached >= revision).await;
        reached.map(drop).map_err(|_| ended())
    }
}

fn ended() -> Error {
    Error::Unavailable { message: "the definitions of resources are not followed any more".to_owned() }
}
