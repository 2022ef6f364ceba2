//! Where the traffic of Services goes: EndpointSlices and Endpoints of those that select Pods, and slices of Endpoints that
//! somebody else writes.

mod copy;
mod hints;
mod made;
mod mirror;
mod own;
mod pack;
mod publish;
mod slices;
mod subsets;
#[cfg(test)]
mod tests;
mod trigger;
mod view;

pub(super) use copy::controller as mirroring;
pub(super) use pack::controller as endpoints;
pub(super) use publish::controller as slices;

use view::{Pod, Service};

use crate::{Cache, Kind, ObjectKey};

const SERVICES: Kind = Kind { group: "", version: "v1", kind: "Service", plural: "services" };
const PODS: Kind = Kind { group: "", version: "v1", kind: "Pod", plural: "pods" };
const NODES: Kind = Kind { group: "", version: "v1", kind: "Node", plural: "nodes" };
const ENDPOINTS: Kind = Kind { group: "", version: "v1", kind: "Endpoints", plural: "endpoints" };
const SLICES: Kind =
    Kind { group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", plural: "endpointslices" };

/// The Services that select one of these Pods.
fn fitting<'a>(services: &Cache<Service>, pods: impl Iterator<Item = &'a Pod>) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    for pod in pods {
        let namespace = &pod.metadata.namespace;
        let fits = |(_, service): &(String, std::sync::Arc<Service>)| service.fits(&pod.metadata.labels);
        let names = services.within(namespace).into_iter().filter(fits).map(|(name, _)| name);
        keys.extend(names.map(|name| ObjectKey::new(namespace, name)));
    }
    keys
}
