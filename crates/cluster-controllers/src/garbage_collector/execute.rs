//! Lookups of owners, and the writes to objects.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt, TryStreamExt};
use kube::api::{DeleteParams, ListParams, Preconditions, PropagationPolicy};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::decide::{CollectorStep, Facts, Propagation, Standing, decide};
use super::graph::{CollectedObject, Coordinates, Ending, FOREGROUND, Node, ORPHAN, Uid};
use super::{Collector, Key};
use controller::events::Reference;
use controller::{Context, Error, Objects, Result};

/// The number of attempts of a write that conflicts.
const ATTEMPTS: usize = 5;
/// The number of dependents that are orphaned concurrently.
const CONCURRENT_ORPHANS: usize = 32;
/// The size of the cache of absent owners.
const ABSENCES_MAX: usize = 1000;

/// The cache of absent owners. A uid does not come back.
#[derive(Default)]
pub(super) struct Absences(Mutex<HashSet<(Arc<Coordinates>, Box<str>)>>);

impl Absences {
    fn has(&self, owner: &Arc<Coordinates>, namespace: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(&(Arc::clone(owner), namespace.into()))
    }

    fn add(&self, owner: &Arc<Coordinates>, namespace: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ABSENCES_MAX {
            known.clear();
        }
        known.insert((Arc::clone(owner), namespace.into()));
    }
}

impl Node {
    fn objects(&self, collector: &Collector) -> Objects {
        let namespace = (!self.namespace.is_empty()).then_some(&*self.namespace);
        Objects::new(&collector.client, &self.of.resource, namespace)
    }
}

impl Collector {
    /// Looks up an owner that was not observed, and enqueues its dependents if it is absent.
    pub(super) async fn look_up_owner(&self, id: Uid, context: &Context<Key>) -> Result<()> {
        let (owner, dependent) = match self.graph().any_dependent(id) {
            Some((owner, dependent)) => (owner, dependent.clone()),
            None => return Ok(()),
        };
        if self.standing(id, &owner, &dependent).await? == Some(Standing::Absent) {
            let keys = self.graph().mark_not_found(id);
            keys.into_iter().for_each(|key| context.queue.add(key));
        }
        Ok(())
    }

    /// The state of an owner of an object; `None` if the reference is invalid.
    async fn standing(&self, id: Uid, owner: &Arc<Coordinates>, object: &Node) -> Result<Option<Standing>> {
        // This check comes first: a namespaced object never owns a cluster-scoped one, whatever its state.
        if object.namespace.is_empty() && self.is_namespaced(owner, object).await? {
            return Ok(None);
        }
        {
            let graph = self.graph();
            if graph.is_gone(id) {
                return Ok(Some(Standing::Absent));
            }
            // An object in foreground deletion never leaves that state.
            if graph.node(id).is_some_and(|node| node.ending == Ending::Foreground && *node.uid == *owner.uid)
            {
                return Ok(Some(Standing::Waiting));
            }
        }
        let served = self.served();
        let Some(of) = served.kind(&owner.api_version, &owner.kind) else {
            let Coordinates { api_version, kind, .. } = Coordinates::clone(owner);
            return Err(Error::NoKindMatch { api_version, kind });
        };
        let namespace = if of.is_namespaced { &*object.namespace } else { "" };
        if self.absences.has(owner, namespace) {
            return Ok(Some(Standing::Absent));
        }
        let objects = Objects::new(&self.client, &of.resource, of.is_namespaced.then_some(namespace));
        let found: Option<CollectedObject> = objects.get_metadata(&owner.name).await?;
        Ok(Some(match found.filter(|found| found.metadata.uid == owner.uid) {
            Some(found) if found.metadata.ending() == Ending::Foreground => Standing::Waiting,
            Some(_) => Standing::Solid,
            None => {
                if of.is_namespaced {
                    self.report_if_elsewhere(owner, object, of).await?;
                }
                self.absences.add(owner, namespace);
                Standing::Absent
            }
        }))
    }

    /// Whether a cluster-scoped object refers to a namespaced owner. If the owner exists, an event is recorded once.
    async fn is_namespaced(&self, owner: &Arc<Coordinates>, object: &Node) -> Result<bool> {
        let served = self.served();
        let of = served.kind(&owner.api_version, &owner.kind).filter(|of| of.is_namespaced);
        if let Some(of) = of.filter(|_| !self.absences.has(owner, "")) {
            self.report_if_elsewhere(owner, object, of).await?;
            self.absences.add(owner, "");
        }
        Ok(of.is_some())
    }

    /// Records an event if an owner is in another namespace than the object.
    async fn report_if_elsewhere(
        &self,
        owner: &Coordinates,
        object: &Node,
        of: &controller::discovery::ServedResource,
    ) -> Result<()> {
        let everywhere = Objects::new(&self.client, &of.resource, None);
        let named = ListParams::default().fields(&format!("metadata.name={}", owner.name));
        let found = everywhere.list_metadata::<CollectedObject>(&named).await?;
        if found.items.iter().any(|found| found.metadata.uid == owner.uid) {
            let Coordinates { api_version, kind, name, uid } = owner;
            let namespace = &object.namespace;
            let reference =
                format!("[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]");
            let message = format!("ownerRef {reference} does not exist in namespace {namespace:?}");
            let about = Reference {
                api_version: &object.of.resource.api_version,
                kind: &object.of.resource.kind,
                namespace,
                name: &object.name,
                uid: &object.uid,
            };
            self.recorder.warning(&about, "OwnerRefInvalidNamespace", &message).await;
        }
        Ok(())
    }

    /// Decides about an object with owners, and executes the step.
    pub(super) async fn collect(&self, id: Uid, node: &Node) -> Result<()> {
        let mut standings = Vec::with_capacity(node.owners.len());
        for owner in &node.owners {
            match self.standing(owner.id, &owner.at, node).await? {
                Some(standing) => standings.push(standing),
                // A later lookup would not make the reference valid.
                None => return Ok(()),
            }
        }
        let facts = {
            let graph = self.graph();
            let is_waiting = |id| graph.node(id).is_some_and(|node| node.ending == Ending::Foreground);
            Facts {
                propagation: node.propagation,
                has_dependents: graph.dependents(id).next().is_some(),
                is_dependent_waiting: graph.dependents(id).any(is_waiting),
            }
        };
        match decide(&standings, facts) {
            CollectorStep::Nothing => Ok(()),
            CollectorStep::Release => {
                let both = node.owners.iter().zip(&standings);
                let lost = both.filter(|(_, standing)| **standing != Standing::Solid);
                let lost: Vec<&str> = lost.map(|(owner, _)| &*owner.at.uid).collect();
                self.change_owners(node, |reference| {
                    (!lost.contains(&reference["uid"].as_str().unwrap_or(""))).then_some(reference)
                })
                .await
            }
            CollectorStep::DeleteForeground { unblock } => {
                if unblock {
                    self.change_owners(node, |mut reference| {
                        if reference["blockOwnerDeletion"] == true {
                            reference["blockOwnerDeletion"] = false.into();
                        }
                        Some(reference)
                    })
                    .await?;
                }
                self.delete(node, Propagation::Foreground).await
            }
            CollectorStep::Delete(propagation) => self.delete(node, propagation).await,
        }
    }

    /// Deletes an object with the resource version of the decision as precondition; after a conflict with its present
    /// one, if the owner references are unchanged.
    async fn delete(&self, node: &Node, propagation: Propagation) -> Result<()> {
        let objects = node.objects(self);
        let mut version = node.resource_version.to_string();
        for _ in 0..ATTEMPTS {
            let policy = match propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
                Propagation::Orphan => PropagationPolicy::Orphan,
            };
            let expected = Preconditions { uid: Some(node.uid.to_string()), resource_version: Some(version) };
            let how = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
            match objects.delete(&node.name, &how.preconditions(expected)).await {
                Err(error) if error.is_conflict() => {}
                outcome => return outcome.map(drop),
            }
            let Some(CollectedObject { metadata }) = objects.get_metadata(&node.name).await? else {
                return Ok(());
            };
            let owners = metadata.owner_references.iter().map(|reference| &*reference.uid);
            if metadata.uid != *node.uid {
                return Ok(());
            }
            if !owners.eq(node.owners.iter().map(|owner| &*owner.at.uid)) {
                return Err(Error::other("the owner references of the object changed"));
            }
            version = metadata.resource_version;
        }
        Err(Error::other("the object changed during every attempt"))
    }

    /// Removes the foreground finalizer if no dependent blocks the owner; otherwise enqueues the blocking dependents.
    pub(super) async fn end_foreground(&self, id: Uid, node: &Node, context: &Context<Key>) -> Result<()> {
        let blocking = self.graph().blocking(id);
        if blocking.is_empty() {
            return self.remove_finalizer(node, FOREGROUND).await;
        }
        let others = blocking.into_iter().filter(|(_, ending)| *ending != Ending::Foreground);
        others.for_each(|(dependent, _)| context.queue.add(Key::Object(dependent)));
        Ok(())
    }

    /// Removes an owner from its dependents, then its orphan finalizer.
    pub(super) async fn orphan(&self, id: Uid, node: &Node) -> Result<()> {
        let dependents: Vec<Node> = {
            let graph = self.graph();
            graph.dependents(id).filter_map(|id| graph.node(id).cloned()).collect()
        };
        let is_other = |reference: Value| (reference["uid"] != *node.uid).then_some(reference);
        let work: Vec<_> =
            dependents.iter().map(|dependent| self.change_owners(dependent, is_other)).collect();
        futures::stream::iter(work).buffer_unordered(CONCURRENT_ORPHANS).try_collect::<()>().await?;
        self.remove_finalizer(node, ORPHAN).await
    }

    /// Changes or removes owner references.
    async fn change_owners(&self, node: &Node, change: impl Fn(Value) -> Option<Value>) -> Result<()> {
        self.change(node, |metadata| {
            let old = metadata["ownerReferences"].as_array()?;
            let new: Vec<Value> = old.iter().cloned().filter_map(&change).collect();
            (new != *old).then(|| json!({"ownerReferences": new}))
        })
        .await
    }

    async fn remove_finalizer(&self, node: &Node, finalizer: &str) -> Result<()> {
        self.change(node, |metadata| {
            let old = metadata["finalizers"].as_array()?;
            let new: Vec<&Value> = old.iter().filter(|known| *known != finalizer).collect();
            (new.len() != old.len()).then(|| json!({"finalizers": new}))
        })
        .await
    }

    /// Patches the metadata of the present object, if it exists and there is a change.
    async fn change(&self, node: &Node, change: impl Fn(&Value) -> Option<Value>) -> Result<()> {
        let objects = node.objects(self);
        for _ in 0..ATTEMPTS {
            let Some(object) = objects.get_metadata::<Value>(&node.name).await? else { return Ok(()) };
            let metadata = &object["metadata"];
            if metadata["uid"] != *node.uid {
                return Ok(());
            }
            let Some(mut patch) = change(metadata) else { return Ok(()) };
            patch["resourceVersion"] = metadata["resourceVersion"].clone();
            patch["uid"] = metadata["uid"].clone();
            match objects.merge_patch::<IgnoredAny>(&node.name, &json!({"metadata": patch})).await {
                Err(error) if error.is_conflict() => {}
                Err(error) if error.is_not_found() => return Ok(()),
                outcome => return outcome.map(drop),
            }
        }
        Err(Error::other("the object changed during every attempt"))
    }
}
