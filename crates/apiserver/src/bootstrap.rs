//! The objects that every server has.
//!
//! What nobody could do without, namespaces, is there before the first answer. The rest, and what an older database lacks, comes right
//! behind that: whose answer depends on it waits (`waiting`).

mod objects;
mod services;
mod waiting;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Weak;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::future::try_join_all;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use model::error::Error;
use serde_json::Value;

use crate::api::{ApiServer, Parts};
use crate::auth::accounts::tracking;
use crate::auth::{Connection, Identity};
use crate::body::Body;
use crate::flow_control;
use crate::presence::Presence;
use crate::verbs::{SERVER, store_error};
pub(crate) use objects::{First, path_of};
pub(crate) use services::service;
pub(crate) use waiting::{Progress, answered, until_complete};

/// Objects that are made in one commit once the server answers: few, for all of them are in memory at once.
const GROUP: usize = 32;
/// How long to wait before the rest is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes the objects that nobody can do without, where there is nothing at all yet: through the same pipeline as everyone, in one
/// commit. Says whether the database was fresh.
pub(crate) async fn lay_ground(api: &ApiServer) -> Result<bool, Error> {
    let is_fresh = api.store.clock().await.map_err(store_error)?.is_untouched();
    if is_fresh {
        let namespaces = served(api, objects::namespaces());
        at_once(api, namespaces.iter().map(|first| write(api, first, false))).await?;
    }
    Ok(is_fresh)
}

/// The task that makes the rest, and then lets those pass who wait for it. The address is where what runs in the cluster finds the
/// server.
pub(crate) async fn complete(
    api: Weak<Parts>,
    address: Option<SocketAddr>,
    presence: &mut Option<Presence>,
    is_fresh: bool,
) {
    while let Some(parts) = api.upgrade() {
        let api = ApiServer::of(parts);
        let made = async {
            make_rest(&api, address, is_fresh).await?;
            tracking::begin(&api).await;
            if let Some(presence) = presence {
                presence.begin(&api).await;
            }
            flow_control::settle(&api).await
        };
        match made.await {
            Ok(()) => {
                api.progress.complete();
                return;
            }
            Err(error) => tracing::warn!(%error, "the first objects cannot be made; trying again"),
        }
        drop(api);
        tokio::time::sleep(PAUSE).await;
    }
}

async fn make_rest(api: &ApiServer, address: Option<SocketAddr>, is_fresh: bool) -> Result<(), Error> {
    let others = served(api, objects::others(address, api.services));
    if is_fresh {
        for group in others.chunks(group_size(api)) {
            at_once(api, group.iter().map(|first| write(api, first, false))).await?;
        }
        return Ok(());
    }
    let mut lists: BTreeMap<String, Vec<First>> = BTreeMap::new();
    for first in served(api, objects::namespaces()).into_iter().chain(others) {
        lists.entry(first.list()).or_default().push(first);
    }
    // Namespaces come before what is in them: such is the order of their paths.
    for (list, wanted) in lists {
        mend(api, &list, wanted).await?;
    }
    Ok(())
}

fn group_size(api: &ApiServer) -> usize {
    api.limits.writes_in_flight.clamp(1, GROUP)
}

/// Those that this server has a type for.
fn served(api: &ApiServer, mut objects: Vec<First>) -> Vec<First> {
    let registry = api.registry();
    objects.retain(|first| registry.find(first.group, first.version, first.resource).is_some());
    objects
}

/// Makes what a list lacks, and what is in it as it has to be.
async fn mend(api: &ApiServer, list: &str, wanted: Vec<First>) -> Result<(), Error> {
    let there = existing(api, list).await?;
    let changes: Vec<(First, bool)> = wanted
        .into_iter()
        .filter_map(|mut first| match there.get(first.name()) {
            None => Some((first, false)),
            Some(found) => {
                first.object = first.instead_of(found)?;
                Some((first, true))
            }
        })
        .collect();
    drop(there);
    write_at_once(api, changes).await
}

/// Writes objects, of which some are there already, in as few commits as may be.
pub(crate) async fn write_at_once(api: &ApiServer, objects: Vec<(First, bool)>) -> Result<(), Error> {
    for group in objects.chunks(group_size(api)) {
        at_once(api, group.iter().map(|(first, is_there)| write(api, first, *is_there))).await?;
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

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// What is there, by name. Who is not among the first of a list is found by the attempt to make them.
async fn existing(api: &ApiServer, list: &str) -> Result<BTreeMap<String, Value>, Error> {
    let response = send(api, Method::GET, list, String::new()).await?;
    let body = response.into_body().collect().await.map_err(|error| internal(list, &error))?.to_bytes();
    let mut found: Value = serde_json::from_slice(&body).map_err(|error| internal(list, &error))?;
    let Some(Value::Array(items)) = found.get_mut("items").map(Value::take) else {
        return Ok(BTreeMap::new());
    };
    Ok(items.into_iter().map(|item| (name(&item).to_owned(), item)).collect())
}

async fn write(api: &ApiServer, first: &First, is_there: bool) -> Result<(), Error> {
    let (collection, body) = (first.collection(), first.object.to_string());
    let path = format!("{collection}/{}", first.name());
    let mut code = 0;
    if is_there {
        code = ask(api, Method::PUT, &path, body.clone()).await?;
        if code == 422 {
            ask(api, Method::DELETE, &path, String::new()).await?;
        }
    }
    if !is_there || code == 422 {
        code = ask(api, Method::POST, &collection, body).await?;
    }
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

/// Applies a configuration and tells the code of the answer.
pub(crate) async fn apply(api: &ApiServer, path: &str, body: String) -> Result<u16, Error> {
    Ok(send_as("application/apply-patch+yaml", api, Method::PATCH, path, body).await?.status().as_u16())
}

async fn send(api: &ApiServer, method: Method, path: &str, body: String) -> Result<Response<Body>, Error> {
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    send_as(media, api, method, path, body).await
}

async fn send_as(
    media: &str,
    api: &ApiServer,
    method: Method,
    path: &str,
    body: String,
) -> Result<Response<Body>, Error> {
    let itself = Identity::server();
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
