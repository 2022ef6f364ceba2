//! Bootstrap: creates the objects that every cluster has.
//!
//! The namespaces of a fresh database exist before the first answer. The remaining objects, and those that an older database
//! lacks, are created right after it; requests that depend on them wait (`startup_gate`).

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

/// Objects per commit. All of them are in memory at once, so few.
const GROUP: usize = 32;
/// Delay before a retry.
const PAUSE: Duration = Duration::from_millis(200);

/// Creates the namespaces of a fresh database in one commit, through the request pipeline. Returns whether the database is
/// fresh.
pub(crate) async fn create_namespaces(api: &ApiServer) -> Result<bool, Error> {
    let is_fresh = api.store.clock().await.map_err(store_error)?.is_untouched();
    if is_fresh {
        let namespaces = served(api, objects::namespaces());
        in_one_commit(api, namespaces.iter().map(|first| write(api, first, false))).await?;
    }
    Ok(is_fresh)
}

/// Creates the remaining objects, then releases the requests that wait for them. `address` is that of the Service
/// `kubernetes`.
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
            Err(error) => tracing::warn!(%error, "cannot create the bootstrap objects; retrying"),
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
    // Namespaces come before their objects, by the order of their paths.
    for (list, wanted) in lists {
        reconcile_list(api, &list, wanted).await?;
    }
    Ok(())
}

fn group_size(api: &ApiServer) -> usize {
    api.limits.writes_in_flight.clamp(1, GROUP)
}

/// The objects whose types this server has.
fn served(api: &ApiServer, mut objects: Vec<BootstrapObject>) -> Vec<BootstrapObject> {
    let registry = api.registry();
    objects.retain(|first| registry.find(first.group, first.version, first.resource).is_some());
    objects
}

/// Creates or updates the objects of one list.
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

/// Creates (false) or updates (true) objects in few commits.
pub(crate) async fn write_all(api: &ApiServer, objects: Vec<(BootstrapObject, bool)>) -> Result<(), Error> {
    for group in objects.chunks(group_size(api)) {
        in_one_commit(api, group.iter().map(|(first, is_there)| write(api, first, *is_there))).await?;
    }
    Ok(())
}

/// Runs requests so that their writes share one commit.
async fn in_one_commit(
    api: &ApiServer,
    requests: impl Iterator<Item = impl Future<Output = Result<(), Error>>>,
) -> Result<(), Error> {
    let hold = api.store.hold().await;
    let mut requests = pin!(tokio::task::unconstrained(try_join_all(requests)));
    // Polls each request in order until its write is queued: namespaces come before their objects.
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

/// The objects of a list by name. An object beyond the first page is found when its create conflicts.
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
        // Another server that starts at the same time may have created it, with the same IP.
        _ if loopback::request(api, Method::GET, &path, String::new()).await? == 200 => Ok(()),
        code => Err(loopback::failed(&path, &code)),
    }
}
