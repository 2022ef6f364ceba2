//! Subresources that need a node: log, exec, attach, portforward, proxy. This server does not connect to nodes; it answers as
//! far as Kubernetes would without one.

mod connect;
mod log;
mod proxy;

use http::header::{CACHE_CONTROL, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use model::error::{Error, quote};
use serde_json::Value;

use super::metadata::text;
use super::{Call, store_error};
use crate::auth::{AuthorizerAttributes, Decision};
use crate::body::Body;
use crate::registry::Object;
use crate::request::verb::Verb;

/// The error if only a node could serve the request.
const NO_NODE_CONNECTION: &str = "this server does not connect to nodes, pods and services";

/// The address types of a node, by preference.
const ADDRESSES: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/// Whether a subresource of a built-in type needs a node.
pub(crate) fn needs_node(group: &str, subresource: &str) -> bool {
    group.is_empty() && matches!(subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
}

/// Serves the request as far as possible without a node.
pub async fn serve(call: Call) -> Result<Response<Body>, Error> {
    if call.path.subresource == "log" {
        return log::read(&call).await;
    }
    let options = connect::options(&call).await?;
    may_open(&call)?;
    match (call.path.subresource.as_str(), call.path.resource.as_str()) {
        ("proxy", "pods") => proxy::to_pod(&call).await,
        ("proxy", "services") => proxy::to_service(&call).await,
        ("proxy", _) => proxy::to_node(&call).await,
        ("portforward", _) => {
            let pod = object(&call, "pods", &call.path.name).await?;
            stream(&call, &pod).await
        }
        _ => {
            let pod = object(&call, "pods", &call.path.name).await?;
            container(&pod, options.get("container").and_then(Value::as_str).unwrap_or_default())?;
            stream(&call, &pod).await
        }
    }
}

/// exec, attach and portforward need the verb `create` for every method: WebSockets begin with a GET, and read access must
/// not allow commands.
fn may_open(call: &Call) -> Result<(), Error> {
    if call.path.subresource == "proxy" {
        return Ok(());
    }
    let attributes = AuthorizerAttributes::Resource { verb: Verb::Create.as_str(), path: &call.path };
    match call.api.authorizer.decide(&call.caller, attributes) {
        Decision::Allow { .. } => Ok(()),
        Decision::Deny { reason } | Decision::NoOpinion { reason } => Err(Error::Forbidden {
            group: String::new(),
            resource: call.path.resource.clone(),
            name: call.path.name.clone(),
            message: reason,
        }),
    }
}

/// Reads an object of the core group, in the namespace of the call if it is namespaced.
async fn object(call: &Call, plural: &str, name: &str) -> Result<Object, Error> {
    let found = maybe(call, plural, name).await?;
    found.ok_or_else(|| not_found(plural, name))
}

async fn maybe(call: &Call, plural: &str, name: &str) -> Result<Option<Object>, Error> {
    let registry = call.api.registry();
    let Some(of) = registry.find("", "v1", plural).cloned() else { return Ok(None) };
    let about = call.about(of);
    match call.api.store.get(&about.key_of(name), None).await.map_err(store_error)? {
        Some(head) => about.resource_type.read(&head).await.map(Some),
        None => Ok(None),
    }
}

fn not_found(plural: &str, name: &str) -> Error {
    Error::NotFound { group: String::new(), resource: plural.to_owned(), name: name.to_owned() }
}

/// The requested container, or the only one.
fn container(pod: &Object, named: &str) -> Result<(), Error> {
    let names = |key: &str| {
        let list = pod.get("spec").and_then(|spec| spec.get(key)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|container| container["name"].as_str())
    };
    let mut all = names("initContainers").chain(names("containers")).chain(names("ephemeralContainers"));
    let name = text(pod, "name");
    match named {
        "" if names("containers").count() == 1 => Ok(()),
        "" => {
            let all: Vec<&str> = all.collect();
            let choice = all.join(" ");
            let message =
                format!("a container name must be specified for pod {name}, choose one of: [{choice}]");
            Err(Error::BadRequest { message })
        }
        named if all.any(|name| name == named) => Ok(()),
        named => Err(Error::BadRequest { message: format!("container {named} is not valid for pod {name}") }),
    }
}

fn check_ports(call: &Call) -> Result<(), Error> {
    for port in call.query.all("ports") {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let problem = match (is_number, port.parse::<u16>()) {
            (_, Ok(_)) if is_number => continue,
            (true, _) => "value out of range",
            (false, _) => "invalid syntax",
        };
        let parsing = format!("strconv.ParseUint: parsing {}: {problem}", quote(port));
        return Err(Error::BadRequest { message: format!("cannot convert to []int32: {parsing}") });
    }
    Ok(())
}

/// A stream to a node needs a connection upgrade.
async fn stream(call: &Call, pod: &Object) -> Result<Response<Body>, Error> {
    if !is_placed(call, pod).await? {
        let message = format!("pod {} does not have a host assigned", text(pod, "name"));
        return Err(Error::BadRequest { message });
    }
    if !call.headers.contains_key(UPGRADE) {
        return Err(Error::bad_request("Upgrade request required"));
    }
    Err(Error::Failed { message: format!("error dialing backend: {NO_NODE_CONNECTION}") })
}

/// Whether a Pod is bound to a node, which must then exist and have an address.
async fn is_placed(call: &Call, pod: &Object) -> Result<bool, Error> {
    let node = pod.get("spec").and_then(|spec| spec["nodeName"].as_str()).unwrap_or_default();
    if node.is_empty() {
        return Ok(false);
    }
    // Kubernetes reports the node as a pod.
    let found = maybe(call, "nodes", node).await?.ok_or_else(|| not_found("pods", node))?;
    address(&found).map(|_| true)
}

/// The preferred address of a node.
fn address(node: &Object) -> Result<&str, Error> {
    let list = node.get("status").and_then(|status| status["addresses"].as_array());
    let known: Vec<(&str, &str)> = list
        .into_iter()
        .flatten()
        .map(|address| {
            let part = |key: &str| address[key].as_str().unwrap_or_default();
            (part("type"), part("address"))
        })
        .collect();
    let preferred = ADDRESSES.iter().find_map(|kind| known.iter().find(|(of, _)| of == kind));
    preferred.map(|(_, address)| *address).ok_or_else(|| {
        let known: Vec<String> =
            known.iter().map(|(kind, address)| format!("{{{kind} {address}}}")).collect();
        let known = known.join(" ");
        Error::Failed { message: format!("no preferred addresses found; known addresses: [{known}]") }
    })
}

/// An empty response.
fn empty_response() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
