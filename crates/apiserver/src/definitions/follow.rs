//! The task that keeps the registry as the stored definitions say.

use std::sync::Arc;
use std::time::Duration;

use model::error::Error;
use model::{Resource, Revision, Selector};
use store::{EventKind, Store, Stored, Watch, WatchScope};
use tokio::sync::watch;

use super::Catalog;
use crate::pages::Pages;
use crate::registry::Registry;
use crate::registry::custom::Read;
use crate::verbs::store_error;
use crate::webhook::Services;

/// How long to wait before the log is read again that could not be read.
const PAUSE: Duration = Duration::from_millis(200);

/// Fills the registry from the store, and gives the task that keeps it so until it is dropped.
pub(crate) async fn follow(
    store: &Store,
    catalog: Arc<Catalog>,
    position: watch::Sender<Revision>,
) -> Result<impl Future<Output = ()> + Send + 'static, Error> {
    let mut watch = read_all(store, &catalog, &position).await.map_err(store_error)?;
    let (store, services) = (store.clone(), Services::of(store));
    Ok(async move {
        loop {
            match watch.next().await {
                Ok(events) => {
                    position.send_replace(apply(&catalog, &events, &services));
                }
                Err(store::Error::Expired { .. }) => match read_all(&store, &catalog, &position).await {
                    Ok(again) => watch = again,
                    Err(error) => pause(&error).await,
                },
                Err(error) => pause(&error).await,
            }
        }
    })
}

async fn pause(error: &store::Error) {
    tracing::warn!(%error, "the definitions of resources cannot be followed; trying again");
    tokio::time::sleep(PAUSE).await;
}

fn resource() -> Resource {
    Resource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Reads all definitions, as of one revision, and watches from there.
async fn read_all(
    store: &Store,
    catalog: &Catalog,
    position: &watch::Sender<Revision>,
) -> Result<Watch, store::Error> {
    let services = Services::of(store);
    let mut registry = Registry::clone(&catalog.registry());
    let mut gone: Vec<String> = registry.all_definitions().map(|definition| definition.name()).collect();
    let mut pages = Pages::all_at_once(store, resource());
    let mut revision = Revision::ZERO;
    while let Some(page) = pages.next().await? {
        revision = page.revision;
        for item in &page.items {
            gone.retain(|name| *name != item.key.name);
            define(&mut registry, item, &services);
        }
    }
    gone.iter().for_each(|name| registry.undefine(name));
    catalog.replace(registry);
    position.send_replace(revision);
    let scope =
        WatchScope { resource: resource(), namespace: None, name: None, selector: Selector::default() };
    store.watch(scope, revision).await
}

/// Acts on changes; the revision up to which the registry follows then.
fn apply(catalog: &Catalog, events: &[store::Event], services: &Services) -> Revision {
    let mut registry = Registry::clone(&catalog.registry());
    let mut reached = Revision::ZERO;
    for event in events {
        let change = &event.change;
        reached = change.revision;
        if event.kind == EventKind::Deleted {
            registry.undefine(&change.key.name);
        } else if let Some(read) = Read::new(change.uid.clone(), change.revision, &change.value, services) {
            registry.define(read);
        }
    }
    catalog.replace(registry);
    reached
}

fn define(registry: &mut Registry, stored: &Stored, services: &Services) {
    match Read::new(stored.uid.clone(), stored.revision, &stored.value, services) {
        Some(read) => registry.define(read),
        None => tracing::error!(key = %stored.key, "a stored definition cannot be read"),
    }
}
