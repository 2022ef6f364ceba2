//! The definitions of custom resources, and how the registry follows them.
//!
//! One task per server watches the stored definitions and is the only one that changes the registry, in the order of the log.
//! Whoever writes or reads a definition waits until that task has seen it: the answer comes when the kind is served.

mod announcing;
pub(crate) mod conditions;
mod ending;
mod follow;
pub(crate) mod indexing;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use model::Revision;
use model::error::Error;
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) use ending::look_after;
pub(crate) use follow::follow;
pub(crate) use indexing::keep_indexes;

use crate::registry::{Definition, Registry};

/// How long a request waits for the registry.
const PATIENCE: Duration = Duration::from_secs(10);

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
        match timeout(PATIENCE, reached.wait_for(has_moved)).await {
            Ok(moved) => moved.map(drop).map_err(|_| ended()),
            Err(_) => Err(Error::DefinitionChanged),
        }
    }

    /// Waits until the registry has followed all of these definitions: what a client sees of them it may use.
    pub async fn follows_all(&self, revisions: impl Iterator<Item = Revision>) -> Result<(), Error> {
        match revisions.max() {
            Some(last) => self.follows(last).await,
            None => Ok(()),
        }
    }

    /// Waits until the registry has followed the definitions up to this revision, but not for ever: a database that has just
    /// taken a write may be out of reach for who reads it.
    pub async fn follows(&self, revision: Revision) -> Result<(), Error> {
        let mut reached = self.reached.clone();
        let reached = reached.wait_for(|reached| *reached >= revision);
        match timeout(PATIENCE, reached).await {
            Ok(reached) => reached.map(drop).map_err(|_| ended()),
            Err(_) => {
                tracing::warn!(%revision, "a definition is written and not yet followed");
                Ok(())
            }
        }
    }
}

fn ended() -> Error {
    Error::Unavailable { message: "the definitions of resources are not followed any more".to_owned() }
}
