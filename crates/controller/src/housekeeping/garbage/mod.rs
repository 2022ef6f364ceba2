//! Collects objects whose owners are gone, and lets owners go that wait for their dependents.
//!
//! The metadata of all types is watched, but only objects with owners are remembered, and those that wait. That an owner is gone
//! is known from its end, or asked for: nothing is deleted that has an owner which may be there. A deletion names the
//! object's uid and the revision that the decision was made about.

mod decide;
mod execute;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use serde::de::IgnoredAny;

use self::execute::Absences;
use self::graph::{Ending, Graph, Uid, View};
use crate::discovery::{Served, ServedType};
use crate::manager::Setup;
use crate::{
    Context, Controller, Error, Event, Kind, Listener, Next, Queue, Reconcile, Result, Target, Watches,
};

const DEFINITIONS: Kind = Kind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
const API_SERVICES: Kind =
    Kind { group: "apiregistration.k8s.io", version: "v1", kind: "APIService", plural: "apiservices" };
/// Objects that are decided about side by side: the more deletions share a commit, the less each costs. It is half of the writes that
/// a server takes at a time (`--max-mutating-requests-inflight`), so that others are not sent away.
const WORKERS: usize = 96;
/// Changes of types within this time are looked at together.
const SETTLE: Duration = Duration::from_millis(50);
/// How long to wait for the first reading of all types before trying later.
const SYNC_PATIENCE: Duration = Duration::from_secs(2);

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Which types there are.
    Types,
    /// Whether an owner is there that was not seen.
    Owner(Uid),
    /// What becomes of an object.
    Object(Uid),
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = Key> + use<>> {
    let collector = Collector {
        client: setup.client.clone(),
        watches: setup.watches.clone(),
        graph: Arc::default(),
        types: Mutex::default(),
        absences: Absences::default(),
    };
    let mut controller = Controller::new("garbage-collector-controller", collector).workers(WORKERS);
    controller.context().queue.add(Key::Types);
    for kind in [DEFINITIONS, API_SERVICES] {
        let queue = controller.context().queue;
        controller =
            controller.watch::<IgnoredAny, _>(&setup.watches, Target::all(kind).metadata(), move |_| {
                queue.add_after(Key::Types, SETTLE);
                None
            });
    }
    controller
}

struct Collector {
    client: Client,
    watches: Watches,
    graph: Arc<Mutex<Graph>>,
    types: Mutex<Types>,
    absences: Absences,
}

/// The types as they were when they were last asked for.
#[derive(Default)]
struct Types {
    served: Arc<Served>,
    /// Those that are watched, by the path of their collection.
    watched: HashMap<String, Watched>,
    /// What has to be looked at again when there are other types: it names an owner of a type that is not there.
    waiting: HashSet<Key>,
}

/// A type that is watched.
struct Watched {
    of: Arc<ServedType>,
    /// Whether everything has been heard that there was to say of its objects: the server does not have it any more.
    is_over: Arc<AtomicBool>,
}

impl Types {
    /// A look that needs a type comes again when there are other types, which may be so already.
    fn wait_for(&mut self, key: Key, missing: &NoSuchType) -> Next {
        if self.served.kind(&missing.api_version, &missing.kind).is_some() {
            return Next::After(Duration::ZERO);
        }
        self.waiting.insert(key);
        Next::Done
    }
}

impl Reconcile for Collector {
    type Key = Key;

    async fn reconcile(&self, key: &Key, context: &Context<Key>) -> Result<Next> {
        match self.look_at(*key, context).await {
            Err(Error::Other(error)) => match error.downcast::<NoSuchType>() {
                Ok(missing) => {
                    tracing::debug!(?key, %missing, "an owner cannot be looked for");
                    Ok(self.types().wait_for(*key, &missing))
                }
                Err(error) => Err(Error::Other(error)),
            },
            outcome => outcome.map(|()| Next::Done),
        }
    }
}

impl Collector {
    async fn look_at(&self, key: Key, context: &Context<Key>) -> Result<()> {
        match key {
            Key::Types => self.look_for_types(context).await?,
            Key::Owner(id) => self.look_for_owner(id, context).await?,
            Key::Object(id) => {
                let node = self.graph().node(id).cloned();
                match node.map(|node| (node.ending, node)) {
                    None | Some((Ending::Plain, _)) => {}
                    Some((Ending::No, node)) => self.collect(id, &node).await?,
                    Some((Ending::Foreground, node)) => {
                        self.all_types_read(context).await?;
                        self.end_foreground(id, &node, context).await?;
                    }
                    Some((Ending::Orphaning, node)) => {
                        self.all_types_read(context).await?;
                        self.orphan(id, &node).await?;
                    }
                }
            }
        }
        Ok(())
    }

    fn types(&self) -> MutexGuard<'_, Types> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn served(&self) -> Arc<Served> {
        Arc::clone(&self.types().served)
    }

    /// What depends on an object is known only when all types have been read.
    async fn all_types_read(&self, context: &Context<Key>) -> Result<()> {
        let read = tokio::time::timeout(SYNC_PATIENCE, context.sources.synced()).await;
        read.map_err(|_| Error::other("not all types have been read yet"))
    }

    /// Watches the types that have come, and forgets those that are gone.
    async fn look_for_types(&self, context: &Context<Key>) -> Result<()> {
        let served = Arc::new(Served::ask(&self.client).await?);
        let mut types = self.types();
        types.waiting.drain().for_each(|key| context.queue.add(key));
        types.served = Arc::clone(&served);
        let wanted: HashMap<String, &ServedType> =
            served.preferred().filter(|of| is_collected(of)).map(|of| (of.path(None), of)).collect();
        let is_complete = served.failures.is_empty();
        types.watched.retain(|path, watched| {
            // Its watch tells when it has heard of the last of its objects.
            let stays = wanted.contains_key(path) || !is_complete || !watched.is_over.load(Ordering::Acquire);
            if !stays {
                context.sources.stop(path);
                self.graph().forget(&watched.of).into_iter().for_each(|key| context.queue.add(key));
            }
            stays
        });
        for (path, of) in wanted {
            if types.watched.contains_key(&path) {
                continue;
            }
            let watched = Watched { of: Arc::new(of.clone()), is_over: Arc::default() };
            let target = Target::all(of.resource.clone()).metadata();
            let follower = Follower {
                graph: Arc::clone(&self.graph),
                queue: context.queue.clone(),
                of: Arc::clone(&watched.of),
                is_over: Arc::clone(&watched.is_over),
                reading: 0,
            };
            context.sources.start(path.clone(), &self.watches, target, follower);
            types.watched.insert(path, watched);
        }
        Ok(())
    }
}

/// An owner is of a type that the server does not have, or not yet.
#[derive(Debug, thiserror::Error)]
#[error("there is no {kind} in {api_version}")]
struct NoSuchType {
    api_version: String,
    kind: String,
}

/// Events come and go in masses, by time: nobody owns them.
fn is_collected(of: &ServedType) -> bool {
    of.offers(&["delete", "list", "watch"]) && of.resource.plural != "events"
}

/// Keeps the objects of one type in the graph.
struct Follower {
    graph: Arc<Mutex<Graph>>,
    queue: Queue<Key>,
    of: Arc<ServedType>,
    is_over: Arc<AtomicBool>,
    /// How often all objects have been read.
    reading: u32,
}

impl Listener for Follower {
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        let mut graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = match event {
            Event::Reset => {
                self.is_over.store(false, Ordering::Release);
                self.reading += 1;
                return Ok(());
            }
            Event::NotServed => {
                self.is_over.store(true, Ordering::Release);
                vec![Key::Types]
            }
            Event::Seen(_, line) => {
                let View { metadata } = line.parse()?;
                graph.seen(&self.of, metadata, self.reading)
            }
            Event::Gone(_, line) => graph.gone(&line.parse::<View>()?.metadata.uid),
            Event::Synced => graph.read_again(&self.of, self.reading),
        };
        drop(graph);
        keys.into_iter().for_each(|key| self.queue.add(key));
        Ok(())
    }
}
