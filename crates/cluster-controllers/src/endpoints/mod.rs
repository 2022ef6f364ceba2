//! The endpoints controller: watches Services and Pods, and writes Endpoints.

pub(crate) mod decide;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller::{
    Cache, Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, Preconditions};
use serde::de::IgnoredAny;

use self::decide::{CONTROLLER, MANAGED_BY, Step};
use crate::Setup;
use crate::service_endpoints::objects::Endpoints;
use crate::service_endpoints::trigger::Seen;
use crate::service_endpoints::view::{Pod, Service};
use crate::service_endpoints::{ENDPOINTS, PODS, SERVICES, fitting, selected};

/// The number of Services that are reconciled concurrently.
const WORKERS: usize = 5;

struct Packing {
    client: Client,
    services: Cache<Service>,
    pods: Cache<Pod>,
    seen: Mutex<HashMap<ObjectKey, Seen>>,
}

/// The controller.
pub(crate) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
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
        .watch_into(&services, &setup.informers, ListWatch::all(SERVICES), |delta| [delta.key.clone()])
        .watch_into(&pods, &setup.informers, ListWatch::all(PODS), move |delta| {
            if delta.old == Some(delta.object) && !delta.is_deleted {
                return Vec::new();
            }
            fitting(&of_pods, delta.old.into_iter().chain([delta.object]))
        })
        .watch::<Endpoints, _>(&setup.informers, ListWatch::all(ENDPOINTS).metadata_only(), move |delta| {
            // Deleted Endpoints are created again; Endpoints without a Service are deleted.
            let has_service = of_endpoints.get(delta.key).is_some();
            let is_left = !has_service && is_own(delta.object);
            let concerns = if delta.is_deleted { has_service } else { is_left };
            concerns.then(|| delta.key.clone())
        })
        .workers(WORKERS)
}

fn is_own(endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|name| name == CONTROLLER)
}

enum Observed {
    /// Endpoints without a Service.
    Left(Endpoints),
    /// A Service with a selector.
    Service {
        service: Arc<Service>,
        pods: Vec<Arc<Pod>>,
        current: Option<Endpoints>,
        trigger: Option<Timestamp>,
    },
}

impl Reconciler for Packing {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = Option<Step>;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let Some(service) = self.services.get(key) else {
            self.seen().remove(key);
            return self.left(key).await;
        };
        if !service.selects() {
            return Ok(None);
        }
        let pods = selected(&self.pods, key, &service);
        let trigger = self.seen().entry(key.clone()).or_default().trigger(&service, &pods);
        let current = self.objects(key).get(&key.name).await?;
        Ok(Some(Observed::Service { service, pods, current, trigger }))
    }

    fn decide(observed: &Observed, _: Timestamp) -> Option<Step> {
        match observed {
            Observed::Left(endpoints) => Some(Step::Delete(endpoints.metadata.uid.clone())),
            Observed::Service { service, pods, current, trigger } => {
                let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
                decide::decide(service, &pods, current.as_ref(), *trigger)
            }
        }
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        _: Observed,
        step: Option<Step>,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        let objects = self.objects(key);
        match step {
            None => {}
            Some(Step::Update(endpoints)) => {
                objects.replace::<IgnoredAny>(&key.name, &endpoints).await?;
            }
            Some(Step::Create(endpoints)) => match objects.create::<IgnoredAny>(&endpoints).await {
                Err(error) if error.is_namespace_terminating() => {}
                made => drop(made?),
            },
            Some(Step::Delete(uid)) => {
                let preconditions = Some(Preconditions { uid, resource_version: None });
                objects.delete(&key.name, &DeleteParams { preconditions, ..DeleteParams::default() }).await?;
            }
        }
        Ok(Outcome::Done)
    }
}

impl Packing {
    fn objects(&self, key: &ObjectKey) -> Objects {
        Objects::new(&self.client, &ENDPOINTS.resource(), key.namespace())
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<ObjectKey, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Endpoints without a Service, after a check that the Service does not exist.
    async fn left(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        let services = Objects::new(&self.client, &SERVICES.resource(), key.namespace());
        let Some(endpoints) = self.objects(key).get::<Endpoints>(&key.name).await? else { return Ok(None) };
        let is_gone = services.get::<IgnoredAny>(&key.name).await?.is_none();
        Ok(is_gone.then_some(Observed::Left(endpoints)))
    }
}
