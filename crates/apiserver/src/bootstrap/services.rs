//! The ServiceCIDR, and the Service `kubernetes`.

use std::net::SocketAddr;

use kinds::Ranges;
use serde_json::json;

use super::objects::BootstrapObject;

/// The namespace of the Service `kubernetes`.
const NAMESPACE: &str = "default";

pub(super) fn objects(address: Option<SocketAddr>, ranges: Ranges) -> Vec<BootstrapObject> {
    let range = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [ranges.network()]}});
    let range = BootstrapObject::new(["networking.k8s.io", "v1", "servicecidrs"], range);
    vec![range, service(address.map_or(443, |address| address.port()), ranges)]
}

/// The Service `kubernetes`, by which Pods reach the server. The identity Lease controller writes its endpoints.
pub(crate) fn service(port: u16, ranges: Ranges) -> BootstrapObject {
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": ranges.first_address().to_string(),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    });
    BootstrapObject { namespace: NAMESPACE, ..BootstrapObject::new(["", "v1", "services"], service) }
}
