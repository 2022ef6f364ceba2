//! The index of selectable fields: objects written before a field became selectable are written again.
//!
//! A mark in the store records the remaining work. The write of the CRD creates it, each page of objects advances it, and the
//! last page deletes it, so a crash loses nothing. Requests that select by the field wait for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use model::error::Error;
use model::selector::Target;
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};
use serde_json::{Value, json};
use store::{Position, Precondition, Store, Stored, WatchScope, Write};
use tokio::time::{sleep, timeout};

use crate::api::{ApiServer, ServerState};
use crate::informer::Trigger;
use crate::pages::Pages;
use crate::registry::{Crd, Object};
use crate::verbs::{Call, instances, store_error, write_again};

/// Concurrent writes; they share commits.
const CONCURRENCY: usize = 100;
/// Delay before a retry.
const PAUSE: Duration = Duration::from_millis(500);
/// A mark that has not advanced for this long is taken over.
const STALE: Duration = Duration::from_secs(5);
/// The longest wait of a request for the index.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The resource of marks, named like their CRDs. No API path reaches it: groups of CRDs contain a dot.
fn resource() -> Resource {
    Resource::new("indexing", "customresourcedefinitions")
}

fn key(crd: &str) -> ObjectKey {
    ObjectKey::new(&resource(), "", crd)
}

/// The remaining indexing work of a CRD.
struct Mark {
    key: ObjectKey,
    revision: Revision,
    /// The fields that are not indexed for all objects.
    fields: BTreeSet<String>,
    /// The last indexed object.
    after: Option<Position>,
}

impl Mark {
    fn read(stored: &Stored) -> Self {
        let body: Value = serde_json::from_slice(&stored.value).unwrap_or_default();
        let fields = body["fields"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let after = body["after"].as_array().and_then(|after| match after.as_slice() {
            [Value::String(namespace), Value::String(name)] => {
                Some(Position { namespace: namespace.clone(), name: name.clone() })
            }
            _ => None,
        });
        Self {
            key: stored.key.clone(),
            revision: stored.revision,
            fields: fields.map(str::to_owned).collect(),
            after,
        }
    }

    fn body(fields: &BTreeSet<String>, after: Option<&Position>) -> Encoded {
        let mut body = Object::from_iter([("fields".to_owned(), json!(fields))]);
        body.extend(after.map(|after| ("after".to_owned(), json!([after.namespace, after.name]))));
        Encoded::new(&body)
    }

    /// Advances the mark, or deletes it at the end; false if another server changed it.
    async fn move_on(&mut self, api: &ApiServer, after: Option<&Position>) -> Result<bool, Error> {
        let expect = Precondition { revision: Some(self.revision), uid: None };
        let (key, attributes) = (self.key.clone(), Attributes::default());
        let body = Self::body(&self.fields, after);
        let step = match after {
            Some(_) => Write::Update { key, expect, attributes, body },
            None => Write::Delete { key, expect, attributes, body },
        };
        match api.store.write(vec![step]).await {
            Ok(written) => {
                self.revision = written.first().map_or(self.revision, |written| written.revision);
                self.after = after.cloned();
                Ok(true)
            }
            Err(store::Error::Conflict { .. } | store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(store_error(error)),
        }
    }
}

/// The write of a mark in the transaction of a CRD with new selectable fields.
pub(crate) async fn mark(call: &Call, new: &Object, old: &Object) -> Result<Option<Write>, store::Error> {
    if !call.resource_type.is_crd() {
        return Ok(None);
    }
    let (has, had) = (fields(new), fields(old));
    if has.is_subset(&had) {
        return Ok(None);
    }
    let key = key(&call.path.name);
    let fresh = has.difference(&had).map(|field| (*field).to_owned());
    let attributes = Attributes::default();
    Ok(Some(match call.api.store.get(&key, None).await? {
        Some(found) => {
            let expect = Precondition { revision: Some(found.revision), uid: None };
            let fields = fresh.chain(Mark::read(&found).fields).collect();
            Write::Update { key, expect, attributes, body: Mark::body(&fields, None) }
        }
        None => {
            let uid = Uid(uuid::Uuid::new_v4().to_string());
            Write::Create { key, uid, attributes, body: Mark::body(&fresh.collect(), None) }
        }
    }))
}

/// The selectable fields of all versions.
fn fields(crd: &Object) -> BTreeSet<&str> {
    let versions = crd.get("spec").and_then(|spec| spec.get("versions")).and_then(Value::as_array);
    let of_version = |version| Value::get(version, "selectableFields").and_then(Value::as_array);
    let fields = versions.into_iter().flatten().filter_map(of_version).flatten();
    let paths = fields.filter_map(|field| field.get("jsonPath").and_then(Value::as_str));
    paths.map(|path| path.trim_start_matches('.')).collect()
}

/// Waits until the fields of a selector are indexed.
pub(crate) async fn has_fields(call: &Call, selector: &Selector) -> Result<(), Error> {
    let Some(crd) = &call.crd else { return Ok(()) };
    let named = selector.requirements.iter().filter(|requirement| requirement.target == Target::Field);
    let named: Vec<&str> = named.map(|requirement| requirement.key.as_str()).collect();
    if named.is_empty() {
        return Ok(());
    }
    match timeout(TIMEOUT, has_all(call, &crd.name(), &named)).await {
        Ok(outcome) => outcome.map_err(store_error),
        Err(_) => {
            let message = format!("the index does not have {} of all objects yet", named.join(", "));
            Err(Error::Unavailable { message })
        }
    }
}

async fn has_all(call: &Call, crd: &str, named: &[&str]) -> Result<(), store::Error> {
    let (store, key) = (&call.api.store, key(crd));
    let is_missing = async || {
        let missing = store.get(&key, None).await?.map(|found| Mark::read(&found).fields).unwrap_or_default();
        Ok::<_, store::Error>(named.iter().any(|field| missing.contains(*field)))
    };
    if !is_missing().await? {
        return Ok(());
    }
    let mut trigger = Trigger::new(store, &call.api.informers, [WatchScope::one(key.clone())]).await;
    while is_missing().await? {
        trigger.fired().await;
    }
    Ok(())
}

/// Completes all marks, until dropped.
pub(crate) async fn run_indexer(server: Weak<ServerState>) {
    let Some((store, informers)) = server.upgrade().map(|state| state.store_and_informers()) else { return };
    let mut trigger = Trigger::new(&store, &informers, [WatchScope::all(resource())]).await;
    while server.strong_count() > 0 {
        match complete_all(&server, &store).await {
            Ok(true) => trigger.fired().await,
            // Another server works on it; wait as long as its mark advances.
            Ok(false) => while timeout(STALE, trigger.fired()).await.is_ok() {},
            Err(error) => {
                tracing::warn!(%error, "cannot complete the index of a selectable field; retrying");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Completes all marks; false if another server works on some.
async fn complete_all(server: &Weak<ServerState>, store: &Store) -> Result<bool, Error> {
    let marks = Pages::of(store, resource()).all().await.map_err(store_error)?;
    let mut outcome = Ok(true);
    for mark in &marks {
        match (complete(server, Mark::read(mark)).await, &mut outcome) {
            (Ok(is_done), Ok(are_done)) => *are_done &= is_done,
            (Err(error), _) => outcome = Err(error),
            (Ok(_), Err(_)) => {}
        }
    }
    outcome
}

/// Writes all objects of a CRD again; false if another server works on it.
async fn complete(server: &Weak<ServerState>, mut mark: Mark) -> Result<bool, Error> {
    loop {
        // Must not keep the server alive between two pages.
        let Some(api) = server.upgrade().map(ApiServer::of) else { return Ok(true) };
        let Some(crd) = crd_of(&api, &mark).await? else {
            return mark.move_on(&api, None).await;
        };
        let mut pages = Pages::of(&api.store, Resource::new(&crd.group, &crd.plural));
        pages = pages.after(mark.after.clone());
        match write_page(&api, &crd, &mut pages).await {
            Ok(()) if !mark.move_on(&api, pages.position()).await? => return Ok(false),
            Ok(()) if mark.after.is_none() => return Ok(true),
            Ok(()) => {}
            Err(Error::DefinitionChanged) => api.catalog.wait_until_replaced(&crd).await?,
            Err(error) => return Err(error),
        }
    }
}

/// The CRD of a mark; `None` if it is deleted.
async fn crd_of(api: &ApiServer, mark: &Mark) -> Result<Option<Arc<Crd>>, Error> {
    let registry = api.registry();
    if let Some(crd) = registry.crd_by_name(&mark.key.name) {
        return Ok(Some(crd.clone()));
    }
    let crds = Resource::new("apiextensions.k8s.io", "customresourcedefinitions");
    let key = ObjectKey::new(&crds, "", &mark.key.name);
    match api.store.get(&key, None).await.map_err(store_error)? {
        None => Ok(None),
        Some(_) => Err(Error::Unavailable { message: format!("{} is not followed yet", mark.key.name) }),
    }
}

async fn write_page(api: &ApiServer, crd: &Arc<Crd>, pages: &mut Pages) -> Result<(), Error> {
    let Some(page) = pages.next().await.map_err(store_error)? else { return Ok(()) };
    // A CRD that was never served has no objects.
    let Some(call) = instances(api, crd) else { return Ok(()) };
    let writes: Vec<_> = page.items.iter().map(|item| write_again(&call, item)).collect();
    let outcomes: Vec<_> = futures::stream::iter(writes).buffered(CONCURRENCY).collect().await;
    outcomes.into_iter().collect()
}
