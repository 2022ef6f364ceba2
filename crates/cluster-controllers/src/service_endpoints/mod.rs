//! Shared code of the endpoints, endpointslice and endpointslice-mirroring controllers: the objects they read and
//! write.

pub(crate) mod objects;
pub(crate) mod own_slices;
#[cfg(test)]
mod tests;
pub(crate) mod trigger;
pub(crate) mod view;

use std::sync::Arc;

use controller::{Cache, ObjectKey, ResourceKind};

use self::view::{Pod, Service};

pub(crate) const SERVICES: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "Service", plural: "services" };
pub(crate) const PODS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Pod", plural: "pods" };
pub(crate) const NODES: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "Node", plural: "nodes" };
pub(crate) const ENDPOINTS: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "Endpoints", plural: "endpoints" };
pub(crate) const SLICES: ResourceKind = ResourceKind {
    group: "discovery.k8s.io",
    version: "v1",
    kind: "EndpointSlice",
    plural: "endpointslices",
};

/// The Pods that a Service selects.
pub(crate) fn selected(pods: &Cache<Pod>, key: &ObjectKey, service: &Service) -> Vec<Arc<Pod>> {
    let pods = pods.within(&key.namespace).into_iter().map(|(_, pod)| pod);
    pods.filter(|pod| service.fits(&pod.metadata.labels)).collect()
}

/// The Services that select one of these Pods.
pub(crate) fn fitting<'a>(services: &Cache<Service>, pods: impl Iterator<Item = &'a Pod>) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    for pod in pods {
        let namespace = &pod.metadata.namespace;
        let fits = |(_, service): &(String, Arc<Service>)| service.fits(&pod.metadata.labels);
        let names = services.within(namespace).into_iter().filter(fits).map(|(name, _)| name);
        keys.extend(names.map(|name| ObjectKey::new(namespace, name)));
    }
    keys
}
