//! The objects that every server has before it answers its first request.

use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, Request};
use http_body_util::Full;
use model::error::Error;
use model::kinds::{flow_schemas, priority_levels};
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::auth::{Connection, Identity};

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

/// An object, and the group, version and resource that it belongs to.
type First = ([&'static str; 3], Value);

/// Makes what is missing, through the same pipeline as everyone: as many at once as the server takes, so that they share commits.
pub(crate) async fn create_objects(api: &ApiServer) -> Result<(), Error> {
    let registry = api.registry();
    let mut missing = objects();
    missing.retain(|([group, version, resource], _)| registry.find(group, version, resource).is_some());
    let at_once = api.limits.reads_in_flight.min(api.limits.writes_in_flight).max(1);
    for objects in missing.chunks(at_once) {
        try_join_all(objects.iter().map(|(place, object)| create(api, *place, object))).await?;
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
    namespaces.into_iter().chain(classes).chain(levels).chain(schemas).collect()
}

fn flow_control(resource: &'static str, name: &str, spec: Value) -> First {
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    (["flowcontrol.apiserver.k8s.io", "v1", resource], object)
}

/// Makes an object unless it is there.
async fn create(api: &ApiServer, [group, version, resource]: [&str; 3], object: &Value) -> Result<(), Error> {
    let path = match group {
        "" => format!("/api/{version}/{resource}"),
        group => format!("/apis/{group}/{version}/{resource}"),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if ask(api, Method::GET, &format!("{path}/{name}"), String::new()).await? == 200 {
        return Ok(());
    }
    match ask(api, Method::POST, &path, object.to_string()).await? {
        201 | 409 => Ok(()),
        code => {
            Err(Error::Internal { message: format!("{path}: the first objects could not be made: {code}") })
        }
    }
}

async fn ask(api: &ApiServer, method: Method, path: &str, body: String) -> Result<u16, Error> {
    let itself = Identity::authenticated("system:apiserver", ["system:masters".to_owned()]);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Error::Internal { message: error.to_string() })?;
    Ok(api.answer(&Connection::InProcess(itself), request).await.status().as_u16())
}
