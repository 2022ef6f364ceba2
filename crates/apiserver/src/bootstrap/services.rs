//! The range of the addresses of services, and the service that the server is itself.

use std::net::SocketAddr;

use model::kinds::Ranges;
use serde_json::{Value, json};

use super::objects::{First, Upkeep};

/// Whoever looks for the server inside a cluster looks here.
const NAMESPACE: &str = "default";

pub(super) fn objects(address: Option<SocketAddr>, ranges: Ranges) -> Vec<First> {
    let range = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [ranges.network()]}});
    let range = First::new(["networking.k8s.io", "v1", "servicecidrs"], range);
    let mut objects = vec![range, service(address.map_or(443, |address| address.port()), ranges)];
    if let Some(address) = address.filter(|address| !address.ip().is_loopback()) {
        objects.extend(pointers(address));
    }
    objects
}

/// The service by which what runs in the cluster finds the server.
fn service(port: u16, ranges: Ranges) -> First {
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": ranges.first_address().to_string(),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    });
    First { namespace: NAMESPACE, ..First::new(["", "v1", "services"], service) }
}

/// What says where the server is.
fn pointers(address: SocketAddr) -> [First; 2] {
    let (ip, port) = (address.ip().to_string(), address.port());
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let endpoints = json!({
        "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    let slice = json!({
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": if address.is_ipv6() { "IPv6" } else { "IPv4" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": ports,
    });
    let pointer = |place: [&'static str; 3], object: Value| First {
        namespace: NAMESPACE,
        upkeep: Upkeep::Follows,
        ..First::new(place, object)
    };
    [
        pointer(["", "v1", "endpoints"], endpoints),
        pointer(["discovery.k8s.io", "v1", "endpointslices"], slice),
    ]
}
