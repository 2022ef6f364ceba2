//! The controller of EndpointSlices: watches Services, Pods, nodes and slices, and does what was decided.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Client;
use serde::Deserialize;

use super::made::{MANAGED_BY, SERVICE_NAME, Slice};
use super::own::OwnSlices;
use super::slices::{self, CONTROLLER, Known};
use super::trigger::Seen;
use super::view::{Pod, Service};
use super::{NODES, PODS, SERVICES, SLICES, fitting};
use crate::events;
use crate::manager::Setup;
use crate::{Cache, Context, Controller, Next, ObjectKey, Reconcile, Result, Target};

/// Services that are looked at side by side.
const WORKERS: usize = 5;
/// The name that events of this controller have.
const REPORTER: &str = "endpoint-slice-controller";

/// Where a node is.
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

struct Publishing {
    client: Client,
    services: Cache<Service>,
    pods: Cache<Pod>,
    nodes: Cache<Node>,
    slices: OwnSlices,
    seen: Mutex<HashMap<ObjectKey, Seen>>,
    /// What people were told last about Pods that were left out, by Service.
    told: Mutex<HashMap<ObjectKey, Vec<String>>>,
}

/// The controller of EndpointSlices.
pub(in super::super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (services, pods) = (Cache::<Service>::default(), Cache::<Pod>::default());
    let (nodes, own_slices) = (Cache::<Node>::default(), OwnSlices::default());
    let slices = own_slices.cache.clone();
    let (services_of_pods, services_of_nodes, pods_of_nodes) =
        (services.clone(), services.clone(), pods.clone());
    let publishing = Publishing {
        client: client.clone(),
        services: services.clone(),
        pods: pods.clone(),
        nodes: nodes.clone(),
        slices: own_slices,
        seen: Mutex::default(),
        told: Mutex::default(),
    };
    let own = format!("{MANAGED_BY}={CONTROLLER}");
    Controller::new("endpointslice-controller", publishing)
        .watch_into(&services, &setup.watches, Target::all(SERVICES), |change| [change.key.clone()])
        .watch_into(&pods, &setup.watches, Target::all(PODS), move |change| {
            if change.before == Some(change.object) && !change.is_gone {
                return Vec::new();
            }
            fitting(&services_of_pods, change.before.into_iter().chain([change.object]))
        })
        .watch_into(&nodes, &setup.watches, Target::all(NODES).metadata(), move |change| {
            if change.before == Some(change.object) && !change.is_gone {
                return Vec::new();
            }
            let pods = pods_of_nodes.all();
            let there =
                pods.iter().map(|(_, pod)| &**pod).filter(|pod| pod.spec.node_name == change.key.name);
            fitting(&services_of_nodes, there)
        })
        .watch_into(&slices, &setup.watches, Target::all(SLICES).labels(own), |change| {
            let service = change.object.label(SERVICE_NAME);
            service.map(|service| ObjectKey::new(&change.key.namespace, service))
        })
        .workers(WORKERS)
}

impl Reconcile for Publishing {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let Some(service) = self.services.get(key) else {
            self.seen().remove(key);
            self.told().remove(key);
            return Ok(Next::Done);
        };
        if !service.selects() {
            return Ok(Next::Done);
        }
        let pods = self.pods.within(&key.namespace);
        let pods: Vec<&Pod> =
            pods.iter().map(|(_, pod)| &**pod).filter(|pod| service.fits(&pod.metadata.labels)).collect();
        let Some(slices) = self.slices.of(key) else { return Ok(Next::Done) };
        let zones = pods.iter().filter_map(|pod| {
            let node = self.nodes.get(&ObjectKey::new("", &pod.spec.node_name))?;
            Some((pod.spec.node_name.clone(), node.metadata.labels.zone.clone()))
        });
        let zones: BTreeMap<String, String> = zones.collect();
        let trigger = self.seen().entry(key.clone()).or_default().trigger(&service, &pods);
        let slices: Vec<&Slice> = slices.iter().map(|slice| &**slice).collect();
        let known = Known { service: &service, pods: &pods, zones: &zones, slices: &slices, trigger };
        let decision = slices::decide(&known);
        self.slices.execute(&self.client, key, decision.steps).await?;
        self.tell(key, &service.metadata.uid, decision.left_out).await;
        Ok(Next::Done)
    }
}

impl Publishing {
    fn seen(&self) -> MutexGuard<'_, HashMap<ObjectKey, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> MutexGuard<'_, HashMap<ObjectKey, Vec<String>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells people which Pods are left out, if it is not what they were told before.
    async fn tell(&self, key: &ObjectKey, uid: &str, left_out: Vec<String>) {
        let message = match left_out.as_slice() {
            [] => {
                self.told().remove(key);
                return;
            }
            [one] => format!("Error updating Endpoint Slices for Service {key}: {one}"),
            many => format!("Error updating Endpoint Slices for Service {key}: [{}]", many.join(", ")),
        };
        if self.told().insert(key.clone(), left_out.clone()) == Some(left_out) {
            return;
        }
        let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
        let about = events::Reference { api_version: "v1", kind: "Service", namespace, name, uid };
        let told =
            events::warn(&self.client, REPORTER, &about, "FailedToUpdateEndpointSlices", &message).await;
        if let Err(error) = told {
            tracing::debug!(service = %key, %error, "an event cannot be written: {message}");
        }
    }
}
