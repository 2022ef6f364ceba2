//! The objects that every server has before it answers its first request.

mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use futures::future::try_join_all;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use model::error::Error;
use model::kinds::{Ranges, flow_schemas, priority_levels};
use model::rbac::{self, Bootstrapped};
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

/// An object that a server has from the start.
struct First {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    /// Empty where there is none.
    namespace: &'static str,
    object: Value,
    upkeep: Upkeep,
}

/// What becomes of an object that is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upkeep {
    /// It stays.
    Nothing,
    /// It is written again where it differs.
    Follows,
    /// What it lacks is added.
    Completed,
}

impl First {
    fn new([group, version, resource]: [&'static str; 3], object: Value) -> Self {
        Self { group, version, resource, namespace: "", object, upkeep: Upkeep::Nothing }
    }

    fn name(&self) -> &str {
        name(&self.object)
    }

    fn collection(&self) -> String {
        let Self { group, version, resource, namespace, .. } = self;
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        match *namespace {
            "" => format!("{root}/{version}/{resource}"),
            namespace => format!("{root}/{version}/namespaces/{namespace}/{resource}"),
        }
    }

    /// The list that shows whether it is there. Of what people make themselves there may be very many.
    fn list(&self) -> String {
        match (self.namespace, self.upkeep) {
            ("", _) | (_, Upkeep::Completed) => format!("{}?limit=500", self.collection()),
            _ => format!("{}?fieldSelector=metadata.name%3D{}", self.collection(), self.name()),
        }
    }

    /// What an object that is there has to become; `None` if it is good as it is.
    fn instead_of(&self, there: &Value) -> Option<Value> {
        let of_its_own = self.object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata");
        match self.upkeep {
            Upkeep::Nothing => None,
            Upkeep::Follows => {
                let is_good = of_its_own.into_iter().all(|(key, value)| there.get(key) == Some(value));
                (!is_good).then(|| self.object.clone())
            }
            Upkeep::Completed => rbac::reconciled(there, &self.object),
        }
    }
}

/// Makes what is missing, through the same pipeline as everyone. The address is where what runs in the cluster finds the server.
pub(crate) async fn create_objects(api: &ApiServer, address: Option<SocketAddr>) -> Result<(), Error> {
    let registry = api.registry();
    let mut missing = objects(address, api.services);
    missing.retain(|first| registry.find(first.group, first.version, first.resource).is_some());
    let clock = api.store.clock().await.map_err(store_error)?;
    // In a fresh database there is nothing, and nobody has to look.
    let mut there = BTreeMap::new();
    if !clock.is_untouched() {
        there = existing(api, &missing).await?;
        missing.retain_mut(|first| {
            let found = there.get(&first.collection()).and_then(|objects| objects.get(first.name()));
            let Some(found) = found else { return true };
            first.instead_of(found).map(|object| first.object = object).is_some()
        });
    }
    let is_there = |first: &First| {
        there.get(&first.collection()).is_some_and(|objects| objects.contains_key(first.name()))
    };
    for objects in missing.chunks(api.limits.writes_in_flight.max(1)) {
        at_once(api, objects.iter().map(|first| write(api, first, is_there(first)))).await?;
    }
    Ok(())
}

/// Runs all of these requests so that what they write shares one commit.
async fn at_once(
    api: &ApiServer,
    requests: impl Iterator<Item = impl Future<Output = Result<(), Error>>>,
) -> Result<(), Error> {
    let hold = api.store.hold().await;
    let mut requests = pin!(tokio::task::unconstrained(try_join_all(requests)));
    // Each goes as far as it can without an answer, in order: namespaces come before what is in them.
    let ended = futures::poll!(requests.as_mut());
    drop(hold);
    match ended {
        Poll::Ready(result) => result.map(drop),
        Poll::Pending => requests.await.map(drop),
    }
}

fn objects(address: Option<SocketAddr>, ranges: Ranges) -> Vec<First> {
    let namespaces =
        NAMESPACES.map(|name| First::new(["", "v1", "namespaces"], json!({"metadata": {"name": name}})));
    let classes = PRIORITY_CLASSES.map(|(name, value, description)| {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        First::new(["scheduling.k8s.io", "v1", "priorityclasses"], class)
    });
    let levels =
        priority_levels().map(|(name, spec)| flow_control("prioritylevelconfigurations", name, spec));
    let schemas = flow_schemas().map(|(name, spec)| flow_control("flowschemas", name, spec));
    let apis = APIS.map(|(version, group, group_priority, version_priority)| {
        api_service(version, group, group_priority, version_priority)
    });
    let roles = rbac::bootstrap().into_iter().map(|Bootstrapped { resource, namespace, object }| {
        let first = First::new([rbac::GROUP, "v1", resource], object);
        First { namespace, upkeep: Upkeep::Completed, ..first }
    });
    let services = services::objects(address, ranges);
    let first = namespaces.into_iter().chain(classes).chain(levels).chain(schemas);
    first.chain(apis).chain(services).chain(roles).collect()
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
    First::new(["apiregistration.k8s.io", "v1", "apiservices"], object)
}

fn flow_control(resource: &'static str, name: &str, spec: Value) -> First {
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    First::new(["flowcontrol.apiserver.k8s.io", "v1", resource], object)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// What is there, by collection and name. Who is not among the first of a list is found by the attempt to make them.
async fn existing(
    api: &ApiServer,
    wanted: &[First],
) -> Result<BTreeMap<String, BTreeMap<String, Value>>, Error> {
    let lists: BTreeSet<(String, String)> =
        wanted.iter().map(|first| (first.collection(), first.list())).collect();
    let read = lists.into_iter().map(|(collection, list)| async move {
        let response = send(api, Method::GET, &list, String::new()).await?;
        let body = response.into_body().collect().await.map_err(|error| internal(&list, &error))?.to_bytes();
        let list: Value = serde_json::from_slice(&body).map_err(|error| internal(&list, &error))?;
        let items = list["items"].as_array().into_iter().flatten();
        Ok::<_, Error>((collection, items.map(|item| (name(item).to_owned(), item.clone())).collect()))
    });
    Ok(try_join_all(read).await?.into_iter().collect())
}

async fn write(api: &ApiServer, first: &First, is_there: bool) -> Result<(), Error> {
    let (collection, body) = (first.collection(), first.object.to_string());
    let path = format!("{collection}/{}", first.name());
    let code = if is_there {
        ask(api, Method::PUT, &path, body).await?
    } else {
        ask(api, Method::POST, &collection, body).await?
    };
    match code {
        200 | 201 | 409 => Ok(()),
        // Another server that starts at the same time may have made it, with an address that only one can have.
        _ if ask(api, Method::GET, &path, String::new()).await? == 200 => Ok(()),
        code => Err(internal(&path, &code)),
    }
}

/// Sends a request and tells the code of the answer.
pub(crate) async fn ask(api: &ApiServer, method: Method, path: &str, body: String) -> Result<u16, Error> {
    Ok(send(api, method, path, body).await?.status().as_u16())
}

async fn send(api: &ApiServer, method: Method, path: &str, body: String) -> Result<Response<Body>, Error> {
    let itself = Identity::server();
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
