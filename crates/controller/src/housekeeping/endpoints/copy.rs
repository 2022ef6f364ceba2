//! The controller that mirrors Endpoints: watches them, their Services and the slices, and does what was decided.

use kube::Client;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::made::{Endpoints, MANAGED_BY, SERVICE_NAME, Slice};
use super::mirror::{self, CONTROLLER};
use super::own::OwnSlices;
use super::view::Texts;
use super::{ENDPOINTS, SERVICES, SLICES};
use crate::manager::Setup;
use crate::{Cache, Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

/// Endpoints that are looked at side by side.
const WORKERS: usize = 5;

/// Whether a Service selects Pods.
#[derive(Default, Deserialize, PartialEq)]
struct Selecting {
    #[serde(default)]
    spec: SelectingSpec,
}

#[derive(Default, Deserialize, PartialEq)]
struct SelectingSpec {
    #[serde(default)]
    selector: Texts,
}

impl Selecting {
    fn selects(&self) -> bool {
        !self.spec.selector.is_empty()
    }
}

struct Copying {
    client: Client,
    services: Cache<Selecting>,
    slices: OwnSlices,
}

/// The controller that mirrors Endpoints.
pub(in super::super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (services, own_slices) = (Cache::<Selecting>::default(), OwnSlices::default());
    let slices = own_slices.cache.clone();
    let copying = Copying { client: client.clone(), services: services.clone(), slices: own_slices };
    let own = format!("{MANAGED_BY}={CONTROLLER}");
    Controller::new("endpointslice-mirroring-controller", copying)
        .watch_into(&services, &setup.watches, Target::all(SERVICES), |change| {
            let selected = change.before.map(Selecting::selects);
            let concerns = change.is_gone || selected != Some(change.object.selects());
            concerns.then(|| change.key.clone())
        })
        .watch::<IgnoredAny, _>(&setup.watches, Target::all(ENDPOINTS).metadata(), |change| {
            [change.key.clone()]
        })
        .watch_into(&slices, &setup.watches, Target::all(SLICES).labels(own), |change| {
            let endpoints = change.object.label(SERVICE_NAME);
            endpoints.map(|endpoints| ObjectKey::new(&change.key.namespace, endpoints))
        })
        .workers(WORKERS)
}

impl Reconcile for Copying {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let is_mirrored = self.services.get(key).is_some_and(|service| !service.selects());
        let objects = Objects::new(&self.client, &ENDPOINTS.resource(), key.namespace());
        let endpoints: Option<Endpoints> = if is_mirrored { objects.get(&key.name).await? } else { None };
        let Some(slices) = self.slices.of(key) else { return Ok(Next::Done) };
        let slices: Vec<&Slice> = slices.iter().map(|slice| &**slice).collect();
        let steps = mirror::decide(endpoints.as_ref(), &slices);
        self.slices.execute(&self.client, key, steps).await?;
        Ok(Next::Done)
    }
}
