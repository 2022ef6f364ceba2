//! The endpointslice controller: watches Services, Pods, Nodes and slices, and writes EndpointSlices.

pub(crate) mod decide;
mod hints;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller::events::{Recorder, Reference};
use controller::{
    Cache, Context, Controller, ListWatch, ObjectKey, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;

use self::decide::{CONTROLLER, Decision, SliceInputs};
use crate::Setup;
use crate::service_endpoints::objects::{MANAGED_BY, SERVICE_NAME, Slice};
use crate::service_endpoints::own_slices::OwnSlices;
use crate::service_endpoints::trigger::TriggerTimes;
use crate::service_endpoints::view::{Pod, Service};
use crate::service_endpoints::{NODES, PODS, SERVICES, SLICES, fitting, selected};

/// The number of Services that are reconciled concurrently.
const WORKERS: usize = 5;
/// The reporter of this controller's events.
const REPORTER: &str = "endpoint-slice-controller";

/// The zone of a Node.
#[derive(Default, Deserialize, PartialEq)]
struct Node {
    metadata: NodeMetadata,
}

#[derive(Default, Deserialize, PartialEq)]
struct NodeMetadata {
    #[serde(default)]
    labels: NodeLabels,
}

#[derive(Default, Deserialize, PartialEq)]
struct NodeLabels {
    #[serde(rename = "topology.kubernetes.io/zone", default)]
    zone: String,
}

struct EndpointSlices {
    client: Client,
    services: Cache<Service>,
    pods: Cache<Pod>,
    nodes: Cache<Node>,
    slices: OwnSlices,
    seen: Mutex<HashMap<ObjectKey, TriggerTimes>>,
    /// The last event about skipped Pods, by Service.
    reported: Mutex<HashMap<ObjectKey, Vec<String>>>,
    recorder: Recorder,
}

/// The controller.
pub(crate) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (services, pods) = (Cache::<Service>::default(), Cache::<Pod>::default());
    let (nodes, own_slices) = (Cache::<Node>::default(), OwnSlices::default());
    let slices = own_slices.cache.clone();
    let (services_of_pods, services_of_nodes, pods_of_nodes) =
        (services.clone(), services.clone(), pods.clone());
    let publishing = EndpointSlices {
        client: client.clone(),
        services: services.clone(),
        pods: pods.clone(),
        nodes: nodes.clone(),
        slices: own_slices,
        seen: Mutex::default(),
        reported: Mutex::default(),
        recorder: Recorder::new(client.clone(), REPORTER),
    };
    let own = format!("{MANAGED_BY}={CONTROLLER}");
    Controller::new("endpointslice-controller", publishing)
        .watch_into(&services, &setup.informers, ListWatch::all(SERVICES), |delta| [delta.key.clone()])
        .watch_into(&pods, &setup.informers, ListWatch::all(PODS), move |delta| {
            if delta.old == Some(delta.object) && !delta.is_deleted {
                return Vec::new();
            }
            fitting(&services_of_pods, delta.old.into_iter().chain([delta.object]))
        })
        .watch_into(&nodes, &setup.informers, ListWatch::all(NODES).metadata_only(), move |delta| {
            if delta.old == Some(delta.object) && !delta.is_deleted {
                return Vec::new();
            }
            let pods = pods_of_nodes.all();
            let there = pods.iter().map(|(_, pod)| &**pod).filter(|pod| pod.spec.node_name == delta.key.name);
            fitting(&services_of_nodes, there)
        })
        .watch_into(&slices, &setup.informers, ListWatch::all(SLICES).labels(own), |delta| {
            let service = delta.object.label(SERVICE_NAME);
            service.map(|service| ObjectKey::new(&delta.key.namespace, service))
        })
        .workers(WORKERS)
}

/// A Service with the inputs of a decision.
struct Observed {
    service: Arc<Service>,
    pods: Vec<Arc<Pod>>,
    zones: BTreeMap<String, String>,
    slices: Vec<Arc<Slice>>,
    trigger: Option<Timestamp>,
}

impl Reconciler for EndpointSlices {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = Decision;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let Some(service) = self.services.get(key) else {
            self.trigger_times().remove(key);
            self.reported().remove(key);
            return Ok(None);
        };
        if !service.selects() {
            return Ok(None);
        }
        let pods = selected(&self.pods, key, &service);
        let Some(slices) = self.slices.of(key) else { return Ok(None) };
        let zones = pods.iter().filter_map(|pod| {
            let node = self.nodes.get(&ObjectKey::new("", &pod.spec.node_name))?;
            Some((pod.spec.node_name.clone(), node.metadata.labels.zone.clone()))
        });
        let zones = zones.collect();
        let trigger = self.trigger_times().entry(key.clone()).or_default().trigger(&service, &pods);
        Ok(Some(Observed { service, pods, zones, slices, trigger }))
    }

    fn decide(observed: &Observed, _: Timestamp) -> Decision {
        let Observed { service, pods, zones, slices, trigger } = observed;
        let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let slices: Vec<&Slice> = slices.iter().map(|slice| &**slice).collect();
        decide::decide(&SliceInputs { service, pods: &pods, zones, slices: &slices, trigger: *trigger })
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        Observed { service, .. }: Observed,
        decision: Decision,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        self.slices.execute(&self.client, key, decision.steps).await?;
        self.report(key, &service.metadata.uid, decision.left_out).await;
        Ok(Outcome::Done)
    }
}

impl EndpointSlices {
    fn trigger_times(&self) -> MutexGuard<'_, HashMap<ObjectKey, TriggerTimes>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reported(&self) -> MutexGuard<'_, HashMap<ObjectKey, Vec<String>>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event about skipped Pods, unless it is the same as the last one.
    async fn report(&self, key: &ObjectKey, uid: &str, left_out: Vec<String>) {
        let message = match left_out.as_slice() {
            [] => {
                self.reported().remove(key);
                return;
            }
            [one] => format!("Error updating Endpoint Slices for Service {key}: {one}"),
            many => format!("Error updating Endpoint Slices for Service {key}: [{}]", many.join(", ")),
        };
        if self.reported().insert(key.clone(), left_out.clone()) == Some(left_out) {
            return;
        }
        let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
        let about = Reference { api_version: "v1", kind: "Service", namespace, name, uid };
        self.recorder.warning(&about, "FailedToUpdateEndpointSlices", &message).await;
    }
}
