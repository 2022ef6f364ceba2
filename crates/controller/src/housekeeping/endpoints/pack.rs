//! The controller of Endpoints: watches Services and Pods, and does what was decided.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::api::{DeleteParams, Preconditions};
use serde::de::IgnoredAny;

use super::made::Endpoints;
use super::subsets::{self, CONTROLLER, MANAGED_BY, Step};
use super::trigger::Seen;
use super::view::{Pod, Service};
use super::{ENDPOINTS, PODS, SERVICES, fitting};
use crate::manager::Setup;
use crate::{Cache, Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

/// Services that are looked at side by side.
const WORKERS: usize = 5;

struct Packing {
    client: Client,
    services: Cache<Service>,
    pods: Cache<Pod>,
    seen: Mutex<HashMap<ObjectKey, Seen>>,
}

/// The controller of Endpoints.
pub(in super::super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (services, pods) = (Cache::<Service>::default(), Cache::<Pod>::default());
    let (of_pods, of_endpoints) = (services.clone(), services.clone());
    let packing = Packing {
        client: client.clone(),
        services: services.clone(),
        pods: pods.clone(),
        seen: Mutex::default(),
    };
    Controller::new("endpoints-controller", packing)
        .watch_into(&services, &setup.watches, Target::all(SERVICES), |change| [change.key.clone()])
        .watch_into(&pods, &setup.watches, Target::all(PODS), move |change| {
            if change.before == Some(change.object) && !change.is_gone {
                return Vec::new();
            }
            fitting(&of_pods, change.before.into_iter().chain([change.object]))
        })
        .watch::<Endpoints, _>(&setup.watches, Target::all(ENDPOINTS).metadata(), move |change| {
            // Those that are gone are made again; those that a Service has left behind are deleted.
            let has_service = of_endpoints.get(change.key).is_some();
            let is_left = !has_service && is_own(change.object);
            let concerns = if change.is_gone { has_service } else { is_left };
            concerns.then(|| change.key.clone())
        })
        .workers(WORKERS)
}

fn is_own(endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|name| name == CONTROLLER)
}

impl Reconcile for Packing {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let objects = Objects::new(&self.client, &ENDPOINTS.resource(), key.namespace());
        let Some(service) = self.services.get(key) else {
            self.seen().remove(key);
            return self.delete(key, &objects).await;
        };
        if !service.selects() {
            return Ok(Next::Done);
        }
        let pods = self.pods.within(&key.namespace);
        let pods: Vec<&Pod> =
            pods.iter().map(|(_, pod)| &**pod).filter(|pod| service.fits(&pod.metadata.labels)).collect();
        let trigger = self.seen().entry(key.clone()).or_default().trigger(&service, &pods);
        let current: Option<Endpoints> = objects.get(&key.name).await?;
        match subsets::decide(&service, &pods, current.as_ref(), trigger) {
            None => {}
            Some(Step::Update(endpoints)) => {
                objects.replace::<IgnoredAny>(&key.name, &endpoints).await?;
            }
            Some(Step::Create(endpoints)) => match objects.create::<IgnoredAny>(&endpoints).await {
                // What ends takes nothing new, and everything with it.
                Err(error) if error.is_of_ending_namespace() => {}
                made => drop(made?),
            },
        }
        Ok(Next::Done)
    }
}

impl Packing {
    fn seen(&self) -> MutexGuard<'_, HashMap<ObjectKey, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes what a Service has left behind, if it is really gone.
    async fn delete(&self, key: &ObjectKey, objects: &Objects) -> Result<Next> {
        let services = Objects::new(&self.client, &SERVICES.resource(), key.namespace());
        let Some(endpoints) = objects.get::<Endpoints>(&key.name).await? else { return Ok(Next::Done) };
        if services.get::<IgnoredAny>(&key.name).await?.is_none() {
            let uid = endpoints.metadata.uid;
            let preconditions = Some(Preconditions { uid, resource_version: None });
            objects.delete(&key.name, &DeleteParams { preconditions, ..DeleteParams::default() }).await?;
        }
        Ok(Next::Done)
    }
}
