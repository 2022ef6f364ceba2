//! The range of the addresses of services, and the service that the server is itself.

use std::net::SocketAddr;

use http::Method;
use model::error::Error;
use model::kinds::{FIRST_ADDRESS, SERVICE_RANGE};
use model::{ObjectKey, Resource};
use serde_json::{Value, json};

use super::ask;
use crate::api::ApiServer;
use crate::verbs::{creation_time, store_error};

const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// Makes what is missing, and says where the server is.
pub(super) async fn create_objects(api: &ApiServer, address: Option<SocketAddr>) -> Result<(), Error> {
    create_range(api).await?;
    create_service(api, address.map_or(443, |address| address.port())).await?;
    match address.filter(|address| !address.ip().is_loopback()) {
        Some(address) => point_to(api, address).await,
        None => Ok(()),
    }
}

/// The addresses of services.
async fn create_range(api: &ApiServer) -> Result<(), Error> {
    let range = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [SERVICE_RANGE]}});
    let was_made = create(api, RANGES, &range).await? == 201;
    // A server that was killed between the two writes has left it without a status.
    if was_made || !is_ready(api).await? {
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": creation_time(),
            "message": "Kubernetes default Service CIDR is ready",
        });
        let status = json!({"status": {"conditions": [ready]}});
        let path = format!("{RANGES}/kubernetes/status");
        expect(ask(api, Method::PATCH, &path, status.to_string()).await?, &path, &[200])?;
    }
    Ok(())
}

async fn is_ready(api: &ApiServer) -> Result<bool, Error> {
    let key = ObjectKey::new(&Resource::new("networking.k8s.io", "servicecidrs"), "", "kubernetes");
    let found = api.store.get(&key, None).await.map_err(store_error)?;
    let object = found.and_then(|found| serde_json::from_slice::<Value>(&found.value).ok());
    Ok(object.is_some_and(|object| object.pointer("/status/conditions/0").is_some()))
}

/// The service by which what runs in the cluster finds the server.
async fn create_service(api: &ApiServer, port: u16) -> Result<(), Error> {
    let path = format!("{SERVICES}/kubernetes");
    let there = || async { Ok::<_, Error>(ask(api, Method::GET, &path, String::new()).await? == 200) };
    if there().await? {
        return Ok(());
    }
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": FIRST_ADDRESS.to_string(),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    });
    match ask(api, Method::POST, SERVICES, service.to_string()).await? {
        201 => Ok(()),
        // Another server that starts at the same time has made it.
        _ if there().await? => Ok(()),
        code => expect(code, SERVICES, &[]),
    }
}

/// Says where the server is.
async fn point_to(api: &ApiServer, address: SocketAddr) -> Result<(), Error> {
    let (ip, port) = (address.ip().to_string(), address.port());
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let endpoints = json!({
        "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    let written = [200, 201];
    expect(ask(api, Method::PUT, ENDPOINTS, endpoints.to_string()).await?, ENDPOINTS, &written)?;
    let slice = json!({
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": if address.is_ipv6() { "IPv6" } else { "IPv4" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": ports,
    });
    if create(api, SLICES, &slice).await? == 409 {
        let path = format!("{SLICES}/kubernetes");
        expect(ask(api, Method::PUT, &path, slice.to_string()).await?, &path, &written)?;
    }
    Ok(())
}

/// Makes an object unless there is one.
async fn create(api: &ApiServer, path: &str, object: &Value) -> Result<u16, Error> {
    let code = ask(api, Method::POST, path, object.to_string()).await?;
    expect(code, path, &[201, 409])?;
    Ok(code)
}

fn expect(code: u16, path: &str, good: &[u16]) -> Result<(), Error> {
    if good.contains(&code) {
        return Ok(());
    }
    Err(Error::Internal { message: format!("{path}: the first objects could not be made: {code}") })
}
