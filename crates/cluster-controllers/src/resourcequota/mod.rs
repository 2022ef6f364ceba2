//! The resourcequota controller: recalculates the use of quotas when they change, and when objects that they count
//! change or are deleted.
//!
//! Admission adds the use of a write to a quota in the transaction of the write, and never subtracts. Objects are
//! listed when a quota is recalculated, and not cached: a quota is counted page by page, so that this is not a
//! `Reconciler`. Each resource that some quota counts has one informer, for deletions.

mod decide;
mod execute;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use controller::discovery::Discovery;
use controller::{
    Cache, Context, Controller, Delta, DeltaHandler, ListWatch, ObjectKey, Outcome, ReconcileKey,
    ResourceKind, Result, SharedInformers, WorkQueue,
};
use kube::Client;
use kube::api::ApiResource;
use quota::QuotaResource;

use self::decide::{Object, Quota, WatchDetail, may_free, watch_detail};
use crate::Setup;
use crate::kinds::{CLAIMS, CONFIG_MAPS, CRDS, PODS, QUOTAS, SECRETS, SERVICES};
use crate::views::Existence;

/// The number of quotas that are recalculated concurrently.
const WORKERS: usize = 2;
/// The watch that runs while a quota counts custom resources.
const NEW_TYPES: &str = "new types";

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let (client, quotas) = (&setup.client, Cache::<Quota>::default());
    let counter = Counter {
        client: client.clone(),
        informers: setup.informers.clone(),
        quotas: quotas.clone(),
        types: Arc::default(),
    };
    Controller::new("resourcequota-controller", counter)
        .watch_into(&quotas, &setup.informers, ListWatch::all(QUOTAS), |delta| {
            let is_same = delta.old.is_some_and(|before| before.spec == delta.object.spec);
            (delta.is_deleted || !is_same || !delta.object.is_counted).then(|| delta.key.clone())
        })
        .workers(WORKERS)
}

struct Counter {
    client: Client,
    informers: SharedInformers,
    quotas: Cache<Quota>,
    types: Arc<Mutex<Types>>,
}

/// Resources that not every server has.
#[derive(Default)]
struct Types {
    /// Their served versions.
    served: BTreeMap<QuotaResource, ApiResource>,
    /// The number of observed changes of CRDs.
    changes: u64,
}

impl ReconcileKey for Counter {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, context: &Context<ObjectKey>) -> Result<Outcome> {
        let Some(quota) = self.quotas.get(key) else {
            self.forget_types(context);
            return Ok(Outcome::Done);
        };
        let served = self.served(&quota.resources).await?;
        self.watch(&quota.resources, &served, context);
        let is_new = execute::count(&self.client, key, &served).await?;
        // Objects created before the status listed their resource were not charged: a second pass counts them.
        Ok(if is_new { Outcome::RequeueAfter(Duration::ZERO) } else { Outcome::Done })
    }
}

impl Counter {
    /// The served ones of these resources.
    async fn served(&self, wanted: &BTreeSet<QuotaResource>) -> Result<BTreeMap<QuotaResource, ApiResource>> {
        let known = || {
            let types = self.types();
            let find =
                |resource: &QuotaResource| core(resource).or_else(|| types.served.get(resource).cloned());
            wanted
                .iter()
                .filter_map(|wanted| Some((wanted.clone(), find(wanted)?)))
                .collect::<BTreeMap<_, _>>()
        };
        let found = known();
        if found.len() == wanted.len() {
            return Ok(found);
        }
        loop {
            let before = self.types().changes;
            let served = Discovery::fetch(&self.client).await?;
            let counted = self.counted();
            let countable =
                served.preferred().filter(|of| of.is_namespaced && of.supports(&["list", "watch"]));
            let named = countable
                .map(|of| (QuotaResource::new(&of.resource.group, &of.resource.plural), of.resource.clone()));
            let mut types = self.types();
            // A lookup that started before a change of CRDs is not cached.
            if types.changes == before {
                types.served = named.filter(|(name, _)| counted.contains(name)).collect();
                drop(types);
                return Ok(known());
            }
        }
    }

    fn types(&self) -> MutexGuard<'_, Types> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resources that some quota counts.
    fn counted(&self) -> BTreeSet<QuotaResource> {
        self.quotas.all().iter().flat_map(|(_, quota)| quota.resources.iter().cloned()).collect()
    }

    /// Watches the objects that a quota counts.
    fn watch(
        &self,
        wanted: &BTreeSet<QuotaResource>,
        served: &BTreeMap<QuotaResource, ApiResource>,
        context: &Context<ObjectKey>,
    ) {
        for (resource, names) in served {
            let (list_watch, watch_detail) = (ListWatch::all(names.clone()), watch_detail(resource));
            let name = format!("{}.{}", resource.plural, resource.group);
            let handler = QuotaHandler {
                queue: context.queue.clone(),
                quotas: self.quotas.clone(),
                resource: resource.clone(),
            };
            let again = handler.clone();
            let synced = move || again.enqueue(None);
            if watch_detail == WatchDetail::Count {
                let each = move |delta: &Delta<'_, Existence>| {
                    if delta.is_deleted {
                        handler.enqueue(Some(&delta.key.namespace));
                    }
                };
                context.subscriptions.add(
                    name,
                    &self.informers,
                    list_watch.metadata_only(),
                    DeltaHandler::new(each, synced),
                );
            } else {
                let each = move |delta: &Delta<'_, Object>| {
                    if delta.is_deleted || may_free(delta.object, watch_detail) {
                        handler.enqueue(Some(&delta.key.namespace));
                    }
                };
                context.subscriptions.add(name, &self.informers, list_watch, DeltaHandler::new(each, synced));
            }
        }
        if wanted.iter().any(|resource| !resource.group.is_empty()) {
            self.watch_types(context);
        }
    }

    /// Watches CRDs: their names are those of the resources.
    fn watch_types(&self, context: &Context<ObjectKey>) {
        let (queue, quotas, types) = (context.queue.clone(), self.quotas.clone(), Arc::clone(&self.types));
        let subscriptions = context.subscriptions.clone();
        let each = move |delta: &Delta<'_, Existence>| {
            let Some((plural, group)) = delta.key.name.split_once('.') else { return };
            let resource = QuotaResource::new(group, plural);
            let mut types = types.lock().unwrap_or_else(PoisonError::into_inner);
            types.served.remove(&resource);
            types.changes += 1;
            drop(types);
            if delta.is_deleted {
                subscriptions.remove(&delta.key.name);
            }
            QuotaHandler { queue: queue.clone(), quotas: quotas.clone(), resource }.enqueue(None);
        };
        let handler = DeltaHandler::<Existence, _, _>::new(each, || {});
        context.subscriptions.add(NEW_TYPES, &self.informers, ListWatch::all(CRDS).metadata_only(), handler);
    }

    /// Ends the watches of resources that no quota counts any more.
    fn forget_types(&self, context: &Context<ObjectKey>) {
        let mut counted = None;
        let own = ListWatch::all(QUOTAS).to_string();
        context.subscriptions.retain(|name| {
            // Computed under the lock: a quota that is added later starts its own watch.
            let counted = counted.get_or_insert_with(|| self.counted());
            let is_counted =
                |QuotaResource { group, plural }: &QuotaResource| name == format!("{plural}.{group}");
            name.starts_with(&own)
                || counted.iter().any(is_counted)
                || name == NEW_TYPES && counted.iter().any(|resource| !resource.group.is_empty())
        });
    }
}

/// A resource that every server has.
fn core(QuotaResource { group, plural }: &QuotaResource) -> Option<ApiResource> {
    let kinds = [CLAIMS, CONFIG_MAPS, PODS, QUOTAS, SECRETS, SERVICES];
    kinds.iter().find(|kind| kind.group == group && kind.plural == plural).map(ResourceKind::resource)
}

/// The event handler that enqueues the quotas of a resource.
#[derive(Clone)]
struct QuotaHandler {
    queue: WorkQueue<ObjectKey>,
    quotas: Cache<Quota>,
    resource: QuotaResource,
}

impl QuotaHandler {
    /// Enqueues the quotas of a namespace, or of all.
    fn enqueue(&self, namespace: Option<&str>) {
        let quotas = match namespace {
            None => self.quotas.all(),
            Some(namespace) => {
                let inside = self.quotas.within(namespace).into_iter();
                inside.map(|(name, quota)| (ObjectKey::new(namespace, name), quota)).collect()
            }
        };
        let concerned = quotas.into_iter().filter(|(_, quota)| quota.resources.contains(&self.resource));
        concerned.for_each(|(key, _)| self.queue.add(key));
    }
}
