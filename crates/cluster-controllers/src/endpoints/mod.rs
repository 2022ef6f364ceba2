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

use self::decide::{CONTROLLER, EndpointsStep, MANAGED_BY};
use crate::Setup;
use crate::service_endpoints::objects::Endpoints;
use crate::service_endpoints::trigger::TriggerTimes;
use crate::service_endpoints::view::{Pod, Service};
use crate::service_endpoints::{ENDPOINTS, PODS, SERVICES, fitting, selected};

/// The number of Services that are reconciled concurrently.
const WORKERS: usize = 5;

struct EndpointsReconciler {
    client: Client,
    services: Cache<Service>,
    pods: Cache<Pod>,
    seen: Mutex<HashMap<ObjectKey, TriggerTimes>>,
}

/// The controller.
pub(crate) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (services, pods) = (Cache::<Service>::default(), Cache::<Pod>::default());
    let (of_pods, of_endpoints) = (services.clone(), services.clone());
    let packing = EndpointsReconciler {
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
    Orphaned(Endpoints),
    /// A Service with a selector.
    Service {
        service: Arc<Service>,
        pods: Vec<Arc<Pod>>,
        current: Option<Endpoints>,
        trigger: Option<Timestamp>,
    },
}

impl Reconciler for EndpointsReconciler {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = Option<EndpointsStep>;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let Some(service) = self.services.get(key) else {
            self.trigger_times().remove(key);
            return self.orphaned(key).await;
        };
        if !service.selects() {
            return Ok(None);
        }
        let pods = selected(&self.pods, key, &service);
        let trigger = self.trigger_times().entry(key.clone()).or_default().trigger(&service, &pods);
        let current = self.objects(key).get(&key.name).await?;
        Ok(Some(Observed::Service { service, pods, current, trigger }))
    }

    fn decide(observed: &Observed, _: Timestamp) -> Option<EndpointsStep> {
        match observed {
            Observed::Orphaned(endpoints) => Some(EndpointsStep::Delete(endpoints.metadata.uid.clone())),
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
        step: Option<EndpointsStep>,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        let objects = self.objects(key);
        match step {
            None => {}
            Some(EndpointsStep::Update(endpoints)) => {
                objects.replace::<IgnoredAny>(&key.name, &endpoints).await?;
            }
            Some(EndpointsStep::Create(endpoints)) => match objects.create::<IgnoredAny>(&endpoints).await {
                Err(error) if error.is_namespace_terminating() => {}
                made => drop(made?),
            },
            Some(EndpointsStep::Delete(uid)) => {
                let preconditions = Some(Preconditions { uid, resource_version: None });
                objects.delete(&key.name, &DeleteParams { preconditions, ..DeleteParams::default() }).await?;
            }
        }
        Ok(Outcome::Done)
    }
}

impl EndpointsReconciler {
    fn objects(&self, key: &ObjectKey) -> Objects {
        Objects::new(&self.client, &ENDPOINTS.resource(), key.namespace())
    }

    fn trigger_times(&self) -> MutexGuard<'_, HashMap<ObjectKey, TriggerTimes>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Endpoints without a Service, after a check that the Service does not exist.
    async fn orphaned(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        let services = Objects::new(&self.client, &SERVICES.resource(), key.namespace());
        let Some(endpoints) = self.objects(key).get::<Endpoints>(&key.name).await? else { return Ok(None) };
        let is_gone = services.get::<IgnoredAny>(&key.name).await?.is_none();
        Ok(is_gone.then_some(Observed::Orphaned(endpoints)))
    }
}
