//! Topology hints of endpoints, for a Service with `trafficDistribution`.

use super::decide::Changes;
use crate::service_endpoints::objects::{Endpoint, Hints, Named, Slice};
use crate::service_endpoints::view::Service;

/// Sets hints in the slices that are written, and adds slices that change only by their hints.
pub(super) fn give(service: &Service, unchanged: &[&Slice], changes: &mut Changes) {
    let distribution = service.spec.traffic_distribution.as_deref();
    let near = matches!(distribution, Some("PreferClose" | "PreferSameZone" | "PreferSameNode"));
    let wanted = |endpoint: &Endpoint| -> Option<Hints> {
        if !near {
            return None;
        }
        // Endpoints that are not ready keep their hints.
        if endpoint.conditions.ready != Some(true) {
            return endpoint.hints.clone();
        }
        let list = |name: &Option<String>| name.iter().map(|name| Named { name: name.clone() }).collect();
        let for_nodes =
            if distribution == Some("PreferSameNode") { list(&endpoint.node_name) } else { Vec::new() };
        let hints = Hints { for_zones: list(&endpoint.zone), for_nodes };
        (hints != Hints::default()).then_some(hints)
    };
    let differs = |slice: &&&Slice| slice.endpoints.iter().any(|endpoint| endpoint.hints != wanted(endpoint));
    changes.update.extend(unchanged.iter().filter(differs).map(|slice| (*slice).clone()));
    for slice in changes.create.iter_mut().chain(&mut changes.update) {
        for endpoint in &mut slice.endpoints {
            endpoint.hints = wanted(endpoint);
        }
    }
}
