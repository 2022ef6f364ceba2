//! The endpointslice-mirroring controller: watches Endpoints that other clients write, and mirrors them to
//! EndpointSlices.

pub(crate) mod decide;

use std::sync::Arc;

use controller::{
    Cache, Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde::de::IgnoredAny;

use self::decide::CONTROLLER;
use crate::Setup;
use crate::service_endpoints::objects::{Endpoints, MANAGED_BY, SERVICE_NAME, Slice, SliceStep};
use crate::service_endpoints::own_slices::OwnSlices;
use crate::service_endpoints::view::Texts;
use crate::service_endpoints::{ENDPOINTS, SERVICES, SLICES};

/// The number of Endpoints that are reconciled concurrently.
const WORKERS: usize = 5;

/// Whether a Service has a selector.
#[derive(Default, Deserialize, PartialEq)]
struct ServiceSelector {
    #[serde(default)]
    spec: SelectingSpec,
}

#[derive(Default, Deserialize, PartialEq)]
struct SelectingSpec {
    #[serde(default)]
    selector: Texts,
}

impl ServiceSelector {
    fn selects(&self) -> bool {
        !self.spec.selector.is_empty()
    }
}

struct MirroredSlices {
    client: Client,
    services: Cache<ServiceSelector>,
    slices: OwnSlices,
}

/// The controller.
pub(crate) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (services, own_slices) = (Cache::<ServiceSelector>::default(), OwnSlices::default());
    let slices = own_slices.cache.clone();
    let copying = MirroredSlices { client: client.clone(), services: services.clone(), slices: own_slices };
    let own = format!("{MANAGED_BY}={CONTROLLER}");
    Controller::new("endpointslice-mirroring-controller", copying)
        .watch_into(&services, &setup.informers, ListWatch::all(SERVICES), |delta| {
            let selected = delta.old.map(ServiceSelector::selects);
            let concerns = delta.is_deleted || selected != Some(delta.object.selects());
            concerns.then(|| delta.key.clone())
        })
        .watch::<IgnoredAny, _>(&setup.informers, ListWatch::all(ENDPOINTS).metadata_only(), |delta| {
            [delta.key.clone()]
        })
        .watch_into(&slices, &setup.informers, ListWatch::all(SLICES).labels(own), |delta| {
            let endpoints = delta.object.label(SERVICE_NAME);
            endpoints.map(|endpoints| ObjectKey::new(&delta.key.namespace, endpoints))
        })
        .workers(WORKERS)
}

/// The Endpoints to mirror, and the slices that mirror them.
struct Observed {
    endpoints: Option<Endpoints>,
    slices: Vec<Arc<Slice>>,
}

impl Reconciler for MirroredSlices {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = Vec<SliceStep>;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let is_mirrored = self.services.get(key).is_some_and(|service| !service.selects());
        let objects = Objects::new(&self.client, &ENDPOINTS.resource(), key.namespace());
        let endpoints = if is_mirrored { objects.get(&key.name).await? } else { None };
        Ok(self.slices.of(key).map(|slices| Observed { endpoints, slices }))
    }

    fn decide(Observed { endpoints, slices }: &Observed, _: Timestamp) -> Vec<SliceStep> {
        let slices: Vec<&Slice> = slices.iter().map(|slice| &**slice).collect();
        decide::decide(endpoints.as_ref(), &slices)
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        _: Observed,
        steps: Vec<SliceStep>,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        self.slices.execute(&self.client, key, steps).await?;
        Ok(Outcome::Done)
    }
}
