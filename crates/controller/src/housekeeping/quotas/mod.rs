//! Counts again what quotas have in use: when they change, and when objects that they count change or go.
//!
//! Admission adds what a write needs to a quota, in the transaction of the write, and never takes away. Objects are read when something
//! is counted and not remembered; of each type that some quota counts there is one watch, which tells of what goes.

mod decide;
mod execute;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::api::ApiResource;
use quota::Resource;

use self::decide::{Object, Quota, Sight, may_free, sight};
use super::following::Following;
use super::kinds::{CLAIMS, CONFIG_MAPS, DEFINITIONS, PODS, QUOTAS, SECRETS, SERVICES};
use super::views::There;
use crate::discovery::Served;
use crate::manager::Setup;
use crate::{
    Cache, Change, Context, Controller, Kind, Next, ObjectKey, Queue, Reconcile, Result, Target, Watches,
};

/// Quotas that are counted side by side.
const WORKERS: usize = 2;
/// The watch that runs while a quota counts types that may come and go.
const NEW_TYPES: &str = "new types";

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let (client, quotas) = (&setup.client, Cache::<Quota>::default());
    let counter = Counter {
        client: client.clone(),
        watches: setup.watches.clone(),
        quotas: quotas.clone(),
        types: Arc::default(),
    };
    Controller::new("resourcequota-controller", counter)
        .watch_into(&quotas, &setup.watches, Target::all(QUOTAS), |change| {
            let is_same = change.before.is_some_and(|before| before.spec == change.object.spec);
            (change.is_gone || !is_same || !change.object.is_counted).then(|| change.key.clone())
        })
        .workers(WORKERS)
}

struct Counter {
    client: Client,
    watches: Watches,
    quotas: Cache<Quota>,
    types: Arc<Mutex<Types>>,
}

/// Types that not every server has.
#[derive(Default)]
struct Types {
    /// The versions in which they are served.
    served: BTreeMap<Resource, ApiResource>,
    /// How many changes of definitions have been heard of.
    changes: u64,
}

impl Reconcile for Counter {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, context: &Context<ObjectKey>) -> Result<Next> {
        let Some(quota) = self.quotas.get(key) else {
            self.forget_types(context);
            return Ok(Next::Done);
        };
        let served = self.served(&quota.resources).await?;
        self.watch(&quota.resources, &served, context);
        let is_new = execute::count(&self.client, key, &served).await?;
        // What was made before the status said what is counted was not charged: a second look finds it.
        Ok(if is_new { Next::After(Duration::ZERO) } else { Next::Done })
    }
}

impl Counter {
    /// Those types that the server has.
    async fn served(&self, wanted: &BTreeSet<Resource>) -> Result<BTreeMap<Resource, ApiResource>> {
        let known = || {
            let types = self.types();
            let find = |resource: &Resource| core(resource).or_else(|| types.served.get(resource).cloned());
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
            let served = Served::ask(&self.client).await?;
            let counted = self.counted();
            let countable = served.preferred().filter(|of| of.is_namespaced && of.offers(&["list", "watch"]));
            let named = countable
                .map(|of| ((of.resource.group.clone(), of.resource.plural.clone()), of.resource.clone()));
            let mut types = self.types();
            // An answer from before a change is not remembered beyond it.
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

    /// The types that some quota counts.
    fn counted(&self) -> BTreeSet<Resource> {
        self.quotas.all().iter().flat_map(|(_, quota)| quota.resources.iter().cloned()).collect()
    }

    /// Follows what a quota counts.
    fn watch(
        &self,
        wanted: &BTreeSet<Resource>,
        served: &BTreeMap<Resource, ApiResource>,
        context: &Context<ObjectKey>,
    ) {
        for (resource, names) in served {
            let (target, sight) = (Target::all(names.clone()), sight(resource));
            let name = format!("{}.{}", resource.1, resource.0);
            let bell = Bell {
                queue: context.queue.clone(),
                quotas: self.quotas.clone(),
                resource: resource.clone(),
            };
            let again = bell.clone();
            let synced = move || again.ring(None);
            if sight == Sight::Count {
                let each = move |change: &Change<'_, There>| {
                    if change.is_gone {
                        bell.ring(Some(&change.key.namespace));
                    }
                };
                context.sources.start(name, &self.watches, target.metadata(), Following::new(each, synced));
            } else {
                let each = move |change: &Change<'_, Object>| {
                    if change.is_gone || may_free(change.object, sight) {
                        bell.ring(Some(&change.key.namespace));
                    }
                };
                context.sources.start(name, &self.watches, target, Following::new(each, synced));
            }
        }
        if wanted.iter().any(|(group, _)| !group.is_empty()) {
            self.watch_types(context);
        }
    }

    /// Follows definitions of types: their names are those of the types.
    fn watch_types(&self, context: &Context<ObjectKey>) {
        let (queue, quotas, types) = (context.queue.clone(), self.quotas.clone(), Arc::clone(&self.types));
        let sources = context.sources.clone();
        let each = move |change: &Change<'_, There>| {
            let Some((plural, group)) = change.key.name.split_once('.') else { return };
            let resource = (group.to_owned(), plural.to_owned());
            let mut types = types.lock().unwrap_or_else(PoisonError::into_inner);
            types.served.remove(&resource);
            types.changes += 1;
            drop(types);
            if change.is_gone {
                sources.stop(&change.key.name);
            }
            Bell { queue: queue.clone(), quotas: quotas.clone(), resource }.ring(None);
        };
        let bell = Following::<There, _, _>::new(each, || {});
        context.sources.start(NEW_TYPES, &self.watches, Target::all(DEFINITIONS).metadata(), bell);
    }

    /// Ends the watches of what no quota counts any more.
    fn forget_types(&self, context: &Context<ObjectKey>) {
        let mut counted = None;
        let own = Target::all(QUOTAS).to_string();
        context.sources.retain(|name| {
            // Not before nobody can start one: a quota that comes later starts its own.
            let counted = counted.get_or_insert_with(|| self.counted());
            let is_counted = |(group, plural): &Resource| name == format!("{plural}.{group}");
            name.starts_with(&own)
                || counted.iter().any(is_counted)
                || name == NEW_TYPES && counted.iter().any(|(group, _)| !group.is_empty())
        });
    }
}

/// A type that every server has.
fn core((group, plural): &Resource) -> Option<ApiResource> {
    let kinds = [CLAIMS, CONFIG_MAPS, PODS, QUOTAS, SECRETS, SERVICES];
    kinds.iter().find(|kind| kind.group == group && kind.plural == plural).map(Kind::resource)
}

/// Asks for a new count of the quotas that count a type.
#[derive(Clone)]
struct Bell {
    queue: Queue<ObjectKey>,
    quotas: Cache<Quota>,
    resource: Resource,
}

impl Bell {
    /// In a namespace, or in all.
    fn ring(&self, namespace: Option<&str>) {
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
