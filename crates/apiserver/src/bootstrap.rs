//! The objects that every server has before it answers its first request.

mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;

use bytes::Bytes;
use futures::future::try_join_all;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use model::Revision;
use model::error::Error;
use model::kinds::{flow_schemas, priority_levels};
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::auth::{Connection, Identity};
use crate::body::Body;
use crate::verbs::{SERVER, store_error};

/// The namespaces that Kubernetes makes by itself.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The priority classes that Kubernetes makes by itself.
const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// Version and group of every API that is served here, with the priorities that Kubernetes gives them.
const APIS: [(&str, &str, i64, i64); 21] = [
    ("v1", "", 18_000, 1),
    ("v1", "admissionregistration.k8s.io", 16_700, 15),
    ("v1", "apiextensions.k8s.io", 16_700, 15),
    ("v1", "apps", 17_800, 15),
    ("v1", "authentication.k8s.io", 17_700, 15),
    ("v1", "authorization.k8s.io", 17_600, 15),
    ("v1", "autoscaling", 17_500, 15),
    ("v1", "batch", 17_400, 15),
    ("v1", "certificates.k8s.io", 17_300, 15),
    ("v1", "coordination.k8s.io", 16_500, 15),
    ("v1", "discovery.k8s.io", 16_200, 15),
    ("v1", "events.k8s.io", 17_750, 15),
    ("v1", "flowcontrol.apiserver.k8s.io", 16_100, 21),
    ("v1", "networking.k8s.io", 17_200, 15),
    ("v1", "node.k8s.io", 16_300, 15),
    ("v1", "policy", 17_100, 15),
    ("v1", "rbac.authorization.k8s.io", 17_000, 15),
    ("v1", "resource.k8s.io", 16_200, 21),
    ("v1", "scheduling.k8s.io", 16_600, 15),
    ("v1", "storage.k8s.io", 16_800, 15),
    ("v2", "autoscaling", 17_500, 30),
];

/// An object, and the group, version and resource that it belongs to.
type First = ([&'static str; 3], Value);

/// Makes what is missing, through the same pipeline as everyone: as many at once as the server takes, so that they share commits.
/// The address is where what runs in the cluster finds the server.
pub(crate) async fn create_objects(api: &ApiServer, address: Option<SocketAddr>) -> Result<(), Error> {
    let registry = api.registry();
    let mut missing = objects();
    missing.retain(|([group, version, resource], _)| registry.find(group, version, resource).is_some());
    let clock = api.store.clock().await.map_err(store_error)?;
    // In a fresh database there is nothing, and nobody has to look.
    if clock.current != Revision::ZERO {
        let mut known = BTreeMap::new();
        for (place, _) in &missing {
            if !known.contains_key(place) {
                known.insert(*place, names(api, &path(*place)).await?);
            }
        }
        missing.retain(|(place, object)| !known[place].contains(name(object)));
    }
    for objects in missing.chunks(api.limits.writes_in_flight.max(1)) {
        try_join_all(objects.iter().map(|(place, object)| create(api, path(*place), object))).await?;
    }
    if registry.find("", "v1", "services").is_some() {
        services::create_objects(api, address).await?;
    }
    Ok(())
}

fn objects() -> Vec<First> {
    let namespaces = NAMESPACES.map(|name| (["", "v1", "namespaces"], json!({"metadata": {"name": name}})));
    let classes = PRIORITY_CLASSES.map(|(name, value, description)| {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        (["scheduling.k8s.io", "v1", "priorityclasses"], class)
    });
    let levels =
        priority_levels().map(|(name, spec)| flow_control("prioritylevelconfigurations", name, spec));
    let schemas = flow_schemas().map(|(name, spec)| flow_control("flowschemas", name, spec));
    let services = APIS.map(|(version, group, group_priority, version_priority)| {
        api_service(version, group, group_priority, version_priority)
    });
    namespaces.into_iter().chain(classes).chain(levels).chain(schemas).chain(services).collect()
}

fn api_service(version: &str, group: &str, group_priority: i64, version_priority: i64) -> First {
    let mut spec = json!({
        "version": version, "groupPriorityMinimum": group_priority, "versionPriority": version_priority,
    });
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    let labels = json!({"kube-aggregator.kubernetes.io/automanaged": "onstart"});
    let object = json!({"metadata": {"name": format!("{version}.{group}"), "labels": labels}, "spec": spec});
    (["apiregistration.k8s.io", "v1", "apiservices"], object)
}

fn flow_control(resource: &'static str, name: &str, spec: Value) -> First {
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    (["flowcontrol.apiserver.k8s.io", "v1", resource], object)
}

fn path([group, version, resource]: [&str; 3]) -> String {
    match group {
        "" => format!("/api/{version}/{resource}"),
        group => format!("/apis/{group}/{version}/{resource}"),
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The names of what is there. Who is not among the first is found by the attempt to make them.
async fn names(api: &ApiServer, path: &str) -> Result<BTreeSet<String>, Error> {
    let response = send(api, Method::GET, &format!("{path}?limit=500"), String::new()).await?;
    let body = response.into_body().collect().await.map_err(|error| internal(path, &error))?.to_bytes();
    let list: Value = serde_json::from_slice(&body).map_err(|error| internal(path, &error))?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.map(|item| name(item).to_owned()).collect())
}

async fn create(api: &ApiServer, path: String, object: &Value) -> Result<(), Error> {
    match ask(api, Method::POST, &path, object.to_string()).await? {
        201 | 409 => Ok(()),
        code => Err(internal(&path, &code)),
    }
}

/// Sends a request and tells the code of the answer.
pub(crate) async fn ask(api: &ApiServer, method: Method, path: &str, body: String) -> Result<u16, Error> {
    Ok(send(api, method, path, body).await?.status().as_u16())
}

async fn send(api: &ApiServer, method: Method, path: &str, body: String) -> Result<Response<Body>, Error> {
    let itself = Identity::authenticated("system:apiserver", ["system:masters".to_owned()]);
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media)
        .header(USER_AGENT, manager(path))
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| internal(path, &error))?;
    Ok(api.answer(&Connection::InProcess(itself), request).await)
}

/// Who owns the fields of the first objects: Kubernetes has a name for the part of the server that makes those of flow control.
fn manager(path: &str) -> &'static str {
    if path.starts_with("/apis/flowcontrol.apiserver.k8s.io/") {
        "api-priority-and-fairness-config-producer-v1"
    } else {
        SERVER
    }
}

fn internal(path: &str, why: &dyn Display) -> Error {
    Error::Internal { message: format!("{path}: the first objects could not be made: {why}") }
}
