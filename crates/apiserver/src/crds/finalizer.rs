//! The CRD controller: deletes the objects of terminating CRDs, retries names that became free, and maintains APIServices.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Weak;
use std::time::Duration;

use http::Method;
use model::error::Error;
use model::{Resource, Uid};
use serde_json::{Value, json};
use store::WatchScope;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::apiservices::ApiServices;
use super::conditions::{CLEANUP, Termination, set_terminating};
use crate::api::{ApiServer, ServerState};
use crate::bootstrap::loopback;
use crate::informer::{Informers, Reached, Trigger};
use crate::pages::Pages;
use crate::registry::{Crd, Object};
use crate::verbs::{creation_time, delete_instances, store_error};

/// The first and the longest delay before a retry.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The time after which objects that still exist are reported in the condition Terminating.
const TIMEOUT: Duration = Duration::from_secs(60);
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Reconciles all CRDs after each change of the registry, until dropped.
pub(crate) async fn run_controller(server: Weak<ServerState>, mut changes: watch::Receiver<Reached>) {
    let mut finalizing = JoinSet::new();
    let mut begun: BTreeMap<String, Uid> = BTreeMap::new();
    let apiservices = ApiServices::default();
    let Some((store, informers)) = server.upgrade().map(|state| state.store_and_informers()) else { return };
    let mut following = pin!(apiservices.start(&store, &informers).await);
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let registry = api.registry();
        begun.retain(|name, uid| registry.crd_by_name(name).is_some_and(|crd| crd.uid == *uid));
        for crd in registry.all_crds() {
            if crd.needs_finalizing && !begun.contains_key(&crd.name()) {
                begun.insert(crd.name(), crd.uid.clone());
                finalizing.spawn(finalize(server.clone(), crd.name(), crd.uid.clone()));
            } else if !crd.has_all_names && !crd.is_terminating {
                retry_names(&api, crd).await;
            }
        }
        let reconciled = apiservices.reconcile(&api, &registry).await;
        if let Err(error) = &reconciled {
            tracing::warn!(%error, "cannot write the APIServices of CRDs; retrying");
        }
        drop((registry, api));
        tokio::select! {
            Some(ended) = finalizing.join_next() => drop(tasks::propagate(ended)),
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = apiservices.changed() => {}
            () = sleep(FIRST_PAUSE), if reconciled.is_err() => {}
            () = &mut following => return,
        }
    }
}

/// Writes an unchanged status: every write of a CRD accepts the names that are free.
async fn retry_names(api: &ApiServer, crd: &Crd) {
    let path = format!("{CRDS}/{}/status", crd.name());
    match loopback::request(api, Method::PATCH, &path, "{}".to_owned()).await {
        Ok(200 | 404 | 409) => {}
        Ok(code) => tracing::warn!(path, code, "cannot retry the names of a CRD"),
        Err(error) => tracing::warn!(path, %error, "cannot retry the names of a CRD"),
    }
}

/// Deletes the objects of a CRD, waits until they are gone, and removes the finalizer. Several servers may do so
/// concurrently.
async fn finalize(server: Weak<ServerState>, name: String, uid: Uid) {
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        // The current CRD: its spec may have changed since the last attempt.
        let registry = api.registry();
        let Some(crd) = registry.crd_by_name(&name).filter(|known| known.uid == uid).cloned() else {
            return;
        };
        drop(registry);
        let outcome = async {
            write_termination(&api, &crd, &Termination::InProgress).await?;
            if let Err(error) = delete_instances(&api, &crd).await {
                write_termination(&api, &crd, &Termination::Failed(error.to_string())).await?;
                return Err(error);
            }
            let (store, informers) = api.store_and_informers();
            // Must not keep the server alive while objects wait for their finalizers.
            drop(api);
            let waited = timeout(TIMEOUT, until_deleted(&store, &informers, &crd)).await;
            let Some(api) = server.upgrade().map(ApiServer::of) else { return Ok(()) };
            match waited {
                Ok(gone) => gone.map_err(store_error)?,
                Err(_) => {
                    write_termination(&api, &crd, &Termination::Unconfirmed).await?;
                    return Err(Error::internal("objects of the CRD still exist"));
                }
            }
            write_termination(&api, &crd, &Termination::Completed).await
        };
        match outcome.await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(name, %error, "cannot finalize a CRD; retrying");
                // A new spec triggers the next attempt at once.
                let _ = timeout(pause, crd.versions.changed.requested()).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Waits until no objects are left. No new ones appear: the CRD is terminating.
async fn until_deleted(store: &store::Store, informers: &Informers, crd: &Crd) -> Result<(), store::Error> {
    let resource = Resource::new(&crd.group, &crd.plural);
    let mut trigger = Trigger::new(store, informers, [WatchScope::all(resource.clone())]).await;
    while !Pages::of(store, resource.clone()).are_empty().await? {
        trigger.fired().await;
    }
    Ok(())
}

/// Writes the condition Terminating. At the end removes the finalizer, which deletes the CRD if it was the last one.
async fn write_termination(api: &ApiServer, crd: &Crd, termination: &Termination) -> Result<(), Error> {
    let found = api.store.get(&crd.key(), None).await.map_err(store_error)?;
    let Some(found) = found.filter(|found| found.uid == crd.uid) else { return Ok(()) };
    let mut object: Object = serde_json::from_slice(&found.value).unwrap_or_default();
    set_terminating(&mut object, termination, &creation_time());
    let mut metadata = json!({"resourceVersion": found.revision.to_string()});
    if let Termination::Completed = termination {
        let finalizers = object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
        let finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
        metadata["finalizers"] = finalizers.filter(|name| *name != CLEANUP).cloned().collect();
    }
    let conditions = object.get("status").and_then(|status| status.get("conditions"));
    let patch = json!({"metadata": metadata, "status": {"conditions": conditions}});
    let path = format!("{CRDS}/{}/status", crd.name());
    match loopback::request(api, Method::PATCH, &path, patch.to_string()).await? {
        200 | 404 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}
