//! The task that looks after definitions: objects of those that end go first, and names that became free are taken.

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

use super::announcing::Announced;
use super::conditions::{CLEANUP, Ending, tell_of_end};
use crate::api::{ApiServer, Parts};
use crate::bootstrap::ask;
use crate::informer::{Informers, Reached, Trigger};
use crate::pages::Pages;
use crate::registry::{Definition, Object};
use crate::verbs::{creation_time, delete_instances, store_error};

/// How long to wait before something is tried again that failed, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long objects may take to go before that is told.
const PATIENCE: Duration = Duration::from_secs(60);
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Looks at the definitions whenever the registry has changed, until it is dropped.
pub(crate) async fn look_after(server: Weak<Parts>, mut changes: watch::Receiver<Reached>) {
    let mut ending = JoinSet::new();
    let mut begun: BTreeMap<String, Uid> = BTreeMap::new();
    let announced = Announced::default();
    let Some((store, informers)) = server.upgrade().map(|parts| parts.followed()) else { return };
    let mut following = pin!(announced.follow(&store, &informers).await);
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let registry = api.registry();
        begun.retain(|name, uid| registry.by_name(name).is_some_and(|definition| definition.uid == *uid));
        for definition in registry.all_definitions() {
            if definition.is_held && !begun.contains_key(&definition.name()) {
                begun.insert(definition.name(), definition.uid.clone());
                ending.spawn(end(server.clone(), definition.name(), definition.uid.clone()));
            } else if !definition.has_all_names && !definition.is_ending {
                take_names(&api, definition).await;
            }
        }
        let settled = announced.settle(&api, &registry).await;
        if let Err(error) = &settled {
            tracing::warn!(%error, "cannot write the APIServices of CRDs; retrying");
        }
        drop((registry, api));
        tokio::select! {
            Some(ended) = ending.join_next() => drop(tasks::propagate(ended)),
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = announced.lost() => {}
            () = sleep(FIRST_PAUSE), if settled.is_err() => {}
            () = &mut following => return,
        }
    }
}

/// Every write of a definition takes the names that are free: one that changes nothing else does.
async fn take_names(api: &ApiServer, definition: &Definition) {
    let path = format!("{DEFINITIONS}/{}/status", definition.name());
    match ask(api, Method::PATCH, &path, "{}".to_owned()).await {
        Ok(200 | 404 | 409) => {}
        Ok(code) => tracing::warn!(path, code, "the names of a definition could not be looked at again"),
        Err(error) => tracing::warn!(path, %error, "the names of a definition could not be looked at again"),
    }
}

/// Deletes the objects of a definition, waits until they are gone, and lets the definition go. Whoever else does the same at the
/// same time, on another server, does no harm.
async fn end(server: Weak<Parts>, name: String, uid: Uid) {
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        // As it is now: what was in the way may have been mended.
        let registry = api.registry();
        let Some(definition) = registry.by_name(&name).filter(|known| known.uid == uid).cloned() else {
            return;
        };
        drop(registry);
        let outcome = async {
            tell(&api, &definition, &Ending::InProgress).await?;
            if let Err(error) = delete_instances(&api, &definition).await {
                tell(&api, &definition, &Ending::Failed(error.to_string())).await?;
                return Err(error);
            }
            let (store, informers) = api.followed();
            // The server may go while objects wait for their finalizers.
            drop(api);
            let waited = timeout(PATIENCE, gone(&store, &informers, &definition)).await;
            let Some(api) = server.upgrade().map(ApiServer::of) else { return Ok(()) };
            match waited {
                Ok(gone) => gone.map_err(store_error)?,
                Err(_) => {
                    tell(&api, &definition, &Ending::Unconfirmed).await?;
                    return Err(Error::internal("objects of it are still there"));
                }
            }
            tell(&api, &definition, &Ending::Completed).await
        };
        match outcome.await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(name, %error, "a definition cannot end yet; trying again");
                // Another spec is another chance.
                let _ = timeout(pause, definition.versions.ended.requested()).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Waits until there are no objects any more. None come meanwhile: the definition is ending.
async fn gone(
    store: &store::Store,
    informers: &Informers,
    definition: &Definition,
) -> Result<(), store::Error> {
    let resource = Resource::new(&definition.group, &definition.plural);
    let mut trigger = Trigger::new(store, informers, [WatchScope::all(resource.clone())]).await;
    while !Pages::of(store, resource.clone()).are_empty().await? {
        trigger.fired().await;
    }
    Ok(())
}

/// Says how far the end of a definition is. At last its finalizer is taken away; if it was the only one, the definition goes.
async fn tell(api: &ApiServer, definition: &Definition, ending: &Ending) -> Result<(), Error> {
    let found = api.store.get(&definition.key(), None).await.map_err(store_error)?;
    let Some(found) = found.filter(|found| found.uid == definition.uid) else { return Ok(()) };
    let mut object: Object = serde_json::from_slice(&found.value).unwrap_or_default();
    tell_of_end(&mut object, ending, &creation_time());
    let mut metadata = json!({"resourceVersion": found.revision.to_string()});
    if let Ending::Completed = ending {
        let finalizers = object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
        let finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
        metadata["finalizers"] = finalizers.filter(|name| *name != CLEANUP).cloned().collect();
    }
    let conditions = object.get("status").and_then(|status| status.get("conditions"));
    let patch = json!({"metadata": metadata, "status": {"conditions": conditions}});
    let path = format!("{DEFINITIONS}/{}/status", definition.name());
    match ask(api, Method::PATCH, &path, patch.to_string()).await? {
        200 | 404 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}
