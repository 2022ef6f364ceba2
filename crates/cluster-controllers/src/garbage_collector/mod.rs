//! The garbage-collector controller: deletes objects whose owners are gone, and finalizes owners that wait for their
//! dependents.
//!
//! The metadata of all types is watched, but only objects with owners and waiting objects are cached. The absence of an
//! owner is known from its observed deletion or from a lookup: no object is deleted whose owner may exist. A deletion
//! has the uid and the resource version of the decision as preconditions. One key may need many lookups of owners, of
//! which the first conclusive one decides: this is not a `Reconciler`.

mod decide;
mod execute;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use controller::discovery::{Discovery, ServedResource};
use controller::events::Recorder;
use controller::{
    Context, Controller, Error, EventHandler, ListWatch, Outcome, ReconcileKey, ResourceKind, Result,
    SharedInformers, WatchEvent, WorkQueue,
};
use kube::Client;
use serde::de::IgnoredAny;

use self::execute::Absences;
use self::graph::{CollectedObject, Ending, Graph, Uid};
use crate::Setup;

const NAME: &str = "garbage-collector-controller";
const CRDS: ResourceKind = ResourceKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
const API_SERVICES: ResourceKind = ResourceKind {
    group: "apiregistration.k8s.io",
    version: "v1",
    kind: "APIService",
    plural: "apiservices",
};
/// The number of objects that are processed concurrently: the more deletions share a commit, the less each costs. Half
/// of `--max-mutating-requests-inflight`, so that requests of other clients are not rejected.
const WORKERS: usize = 96;
/// Changes of CRDs and APIServices within this time are handled together.
const SETTLE: Duration = Duration::from_millis(50);
/// The time to wait for the initial lists of all types; after that the key is retried later.
const SYNC_PATIENCE: Duration = Duration::from_secs(2);

/// A key of the work queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The resources that the server serves.
    Types,
    /// An owner that was not observed and must be looked up.
    Owner(Uid),
    /// An object with owners, or one that waits for its dependents.
    Object(Uid),
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = Key> + use<>> {
    let collector = Collector {
        client: setup.client.clone(),
        informers: setup.informers.clone(),
        graph: Arc::default(),
        types: Mutex::default(),
        absences: Absences::default(),
        recorder: Recorder::new(setup.client.clone(), NAME),
    };
    let mut controller = Controller::new(NAME, collector).workers(WORKERS);
    controller.context().queue.add(Key::Types);
    for kind in [CRDS, API_SERVICES] {
        let queue = controller.context().queue;
        controller = controller.watch::<IgnoredAny, _>(
            &setup.informers,
            ListWatch::all(kind).metadata_only(),
            move |_| {
                queue.add_after(Key::Types, SETTLE);
                None
            },
        );
    }
    controller
}

struct Collector {
    client: Client,
    informers: SharedInformers,
    graph: Arc<Mutex<Graph>>,
    types: Mutex<Types>,
    absences: Absences,
    recorder: Recorder,
}

/// The result of the last discovery.
#[derive(Default)]
struct Types {
    served: Arc<Discovery>,
    /// The watched types, by the path of their collection.
    watched: HashMap<String, Watched>,
    /// Keys of objects with an owner of an unserved type, to add after the next change of types.
    waiting: HashSet<Key>,
}

/// A watched type.
struct Watched {
    of: Arc<ServedResource>,
    /// Whether the informer has ended: the server no longer serves the type.
    is_over: Arc<AtomicBool>,
}

impl Types {
    /// Retries a key that needs an unserved type after the next change of types, which may already have happened.
    fn wait_for(&mut self, key: Key, api_version: &str, kind: &str) -> Outcome {
        if self.served.kind(api_version, kind).is_some() {
            return Outcome::RequeueAfter(Duration::ZERO);
        }
        self.waiting.insert(key);
        Outcome::Done
    }
}

impl ReconcileKey for Collector {
    type Key = Key;

    async fn reconcile(&self, key: &Key, context: &Context<Key>) -> Result<Outcome> {
        match self.process(*key, context).await {
            Err(Error::NoKindMatch { api_version, kind }) => {
                tracing::debug!(
                    ?key,
                    api_version,
                    kind,
                    "the kind of an owner is not served; waiting until it is"
                );
                Ok(self.types().wait_for(*key, &api_version, &kind))
            }
            outcome => outcome.map(|()| Outcome::Done),
        }
    }
}

impl Collector {
    async fn process(&self, key: Key, context: &Context<Key>) -> Result<()> {
        match key {
            Key::Types => self.refresh_types(context).await?,
            Key::Owner(id) => self.look_up_owner(id, context).await?,
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

    fn served(&self) -> Arc<Discovery> {
        Arc::clone(&self.types().served)
    }

    /// Waits for the initial lists of all types: only then the dependents of an object are known.
    async fn all_types_read(&self, context: &Context<Key>) -> Result<()> {
        let read = tokio::time::timeout(SYNC_PATIENCE, context.subscriptions.synced()).await;
        read.map_err(|_| Error::other("the initial lists of all types are not complete yet"))
    }

    /// Starts informers of new types, and drops those of removed ones.
    async fn refresh_types(&self, context: &Context<Key>) -> Result<()> {
        let served = Arc::new(Discovery::fetch(&self.client).await?);
        let mut types = self.types();
        types.waiting.drain().for_each(|key| context.queue.add(key));
        types.served = Arc::clone(&served);
        let wanted: HashMap<String, &ServedResource> =
            served.preferred().filter(|of| is_collected(of)).map(|of| (of.path(None), of)).collect();
        let is_complete = served.failures.is_empty();
        types.watched.retain(|path, watched| {
            // The informer reports when it has removed the last object.
            let stays = wanted.contains_key(path) || !is_complete || !watched.is_over.load(Ordering::Acquire);
            if !stays {
                context.subscriptions.remove(path);
                self.graph().remove_type(&watched.of).into_iter().for_each(|key| context.queue.add(key));
            }
            stays
        });
        for (path, of) in wanted {
            if types.watched.contains_key(&path) {
                continue;
            }
            let watched = Watched { of: Arc::new(of.clone()), is_over: Arc::default() };
            let target = ListWatch::all(of.resource.clone()).metadata_only();
            let follower = GraphHandler {
                graph: Arc::clone(&self.graph),
                queue: context.queue.clone(),
                of: Arc::clone(&watched.of),
                is_over: Arc::clone(&watched.is_over),
                reading: 0,
            };
            context.subscriptions.add(path.clone(), &self.informers, target, follower);
            types.watched.insert(path, watched);
        }
        Ok(())
    }
}

/// Events are excluded: they are many, expire by time, and have no dependents.
fn is_collected(of: &ServedResource) -> bool {
    of.supports(&["delete", "list", "watch"]) && of.resource.plural != "events"
}

/// The event handler that keeps the objects of one type in the graph.
struct GraphHandler {
    graph: Arc<Mutex<Graph>>,
    queue: WorkQueue<Key>,
    of: Arc<ServedResource>,
    is_over: Arc<AtomicBool>,
    /// The number of lists so far.
    reading: u32,
}

impl EventHandler for GraphHandler {
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        let mut graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = match event {
            WatchEvent::Init => {
                self.is_over.store(false, Ordering::Release);
                self.reading += 1;
                return Ok(());
            }
            WatchEvent::NotServed => {
                self.is_over.store(true, Ordering::Release);
                vec![Key::Types]
            }
            WatchEvent::Apply(_, line) => {
                let CollectedObject { metadata } = line.parse()?;
                graph.observe(&self.of, metadata, self.reading)
            }
            WatchEvent::Delete(_, line) => {
                graph.remove_observed(&line.parse::<CollectedObject>()?.metadata.uid)
            }
            WatchEvent::InitDone => graph.relisted(&self.of, self.reading),
        };
        drop(graph);
        keys.into_iter().for_each(|key| self.queue.add(key));
        Ok(())
    }
}
