//! The objects that every server has.
//!
//! What nobody could do without, namespaces, is there before the first answer. The rest, and what an older database lacks, comes right
//! behind that: whose answer depends on it waits (`waiting`).

pub(crate) mod loopback;
mod objects;
mod services;
mod startup_gate;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Weak;
use std::task::Poll;
use std::time::Duration;

use futures::future::try_join_all;
use http::Method;
use http_body_util::BodyExt;
use model::error::Error;
use serde_json::Value;

use crate::api::{ApiServer, ServerState};
use crate::auth::accounts::legacy_token_tracking;
use crate::flow_control;
use crate::identity_lease::IdentityLeaseController;
use crate::verbs::store_error;
pub(crate) use objects::{BootstrapObject, path_of};
pub(crate) use services::service;
pub(crate) use startup_gate::{BootstrapProgress, note_answer, wait_for_bootstrap};

/// Objects that are made in one commit once the server answers: few, for all of them are in memory at once.
const GROUP: usize = 32;
/// How long to wait before the rest is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes the objects that nobody can do without, where there is nothing at all yet: through the same pipeline as everyone, in one
/// commit. Says whether the database was fresh.
pub(crate) async fn create_namespaces(api: &ApiServer) -> Result<bool, Error> {
    let is_fresh = api.store.clock().await.map_err(store_error)?.is_untouched();
    if is_fresh {
        let namespaces = served(api, objects::namespaces());
        in_one_commit(api, namespaces.iter().map(|first| write(api, first, false))).await?;
    }
    Ok(is_fresh)
}

/// The task that makes the rest, and then lets those pass who wait for it. The address is where what runs in the cluster finds the
/// server.
pub(crate) async fn complete(
    api: Weak<ServerState>,
    address: Option<SocketAddr>,
    identity_lease: &mut Option<IdentityLeaseController>,
    is_fresh: bool,
) {
    while let Some(state) = api.upgrade() {
        let api = ApiServer::of(state);
        let made = async {
            create_remaining(&api, address, is_fresh).await?;
            legacy_token_tracking::begin(&api).await;
            if let Some(identity_lease) = identity_lease {
                identity_lease.begin(&api).await;
            }
            flow_control::reconcile(&api).await
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

async fn create_remaining(api: &ApiServer, address: Option<SocketAddr>, is_fresh: bool) -> Result<(), Error> {
    let others = served(api, objects::remaining(address, api.services));
    if is_fresh {
        for group in others.chunks(group_size(api)) {
            in_one_commit(api, group.iter().map(|first| write(api, first, false))).await?;
        }
        return Ok(());
    }
    let mut lists: BTreeMap<String, Vec<BootstrapObject>> = BTreeMap::new();
    for first in served(api, objects::namespaces()).into_iter().chain(others) {
        lists.entry(first.list()).or_default().push(first);
    }
    // Namespaces come before what is in them: such is the order of their paths.
    for (list, wanted) in lists {
        reconcile_list(api, &list, wanted).await?;
    }
    Ok(())
}

fn group_size(api: &ApiServer) -> usize {
    api.limits.writes_in_flight.clamp(1, GROUP)
}

/// Those that this server has a type for.
fn served(api: &ApiServer, mut objects: Vec<BootstrapObject>) -> Vec<BootstrapObject> {
    let registry = api.registry();
    objects.retain(|first| registry.find(first.group, first.version, first.resource).is_some());
    objects
}

/// Makes what a list lacks, and what is in it as it has to be.
async fn reconcile_list(api: &ApiServer, list: &str, wanted: Vec<BootstrapObject>) -> Result<(), Error> {
    let there = existing(api, list).await?;
    let changes: Vec<(BootstrapObject, bool)> = wanted
        .into_iter()
        .filter_map(|mut first| match there.get(first.name()) {
            None => Some((first, false)),
            Some(found) => {
                first.object = first.replacement_for(found)?;
                Some((first, true))
            }
        })
        .collect();
    drop(there);
    write_all(api, changes).await
}

/// Writes objects, of which some are there already, in as few commits as may be.
pub(crate) async fn write_all(api: &ApiServer, objects: Vec<(BootstrapObject, bool)>) -> Result<(), Error> {
    for group in objects.chunks(group_size(api)) {
        in_one_commit(api, group.iter().map(|(first, is_there)| write(api, first, *is_there))).await?;
    }
    Ok(())
}

/// Runs all of these requests so that what they write shares one commit.
async fn in_one_commit(
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
    let response = loopback::send(api, Method::GET, list, String::new()).await?;
    let body =
        response.into_body().collect().await.map_err(|error| loopback::failed(list, &error))?.to_bytes();
    let mut found: Value = serde_json::from_slice(&body).map_err(|error| loopback::failed(list, &error))?;
    let Some(Value::Array(items)) = found.get_mut("items").map(Value::take) else {
        return Ok(BTreeMap::new());
    };
    Ok(items.into_iter().map(|item| (name(&item).to_owned(), item)).collect())
}

async fn write(api: &ApiServer, first: &BootstrapObject, is_there: bool) -> Result<(), Error> {
    let (collection, body) = (first.collection(), first.object.to_string());
    let path = format!("{collection}/{}", first.name());
    let mut code = 0;
    if is_there {
        code = loopback::request(api, Method::PUT, &path, body.clone()).await?;
        if code == 422 {
            loopback::request(api, Method::DELETE, &path, String::new()).await?;
        }
    }
    if !is_there || code == 422 {
        code = loopback::request(api, Method::POST, &collection, body).await?;
    }
    match code {
        200 | 201 | 409 => Ok(()),
        // Another server that starts at the same time may have made it, with an address that only one can have.
        _ if loopback::request(api, Method::GET, &path, String::new()).await? == 200 => Ok(()),
        code => Err(loopback::failed(&path, &code)),
    }
}
