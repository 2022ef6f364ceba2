//! What plugins know of other objects without reading them: small copies that follow the log.
//!
//! Who writes an object that plugins follow is answered when this server has seen the write: it holds at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use model::error::Error;
use model::{ObjectKey, Resource, Revision, Selector};
use store::{EventKind, ListQuery, Position, Store, Watch, WatchScope};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::registry::Object;
use crate::verbs::store_error;

/// Objects read at once.
const PAGE: usize = 500;
/// How long to wait before the log is read again that could not be read.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a writer waits until its write is followed.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of the objects of one namespace, by name.
pub(crate) type Known<T> = Arc<BTreeMap<String, Arc<T>>>;

/// What is kept of an object; nothing of one that does not matter.
type Read<T> = Box<dyn Fn(&ObjectKey, Object) -> Option<T> + Send + Sync>;

/// What is known of the objects of one resource. An object that cannot be read is not known.
pub(crate) struct Mirror<T> {
    resource: Resource,
    read: Read<T>,
    /// By namespace, which is empty for objects of none.
    known: RwLock<BTreeMap<String, Known<T>>>,
    reached: watch::Sender<Revision>,
}

impl<T: Send + Sync + 'static> Mirror<T> {
    pub fn new(
        resource: Resource,
        read: impl Fn(&ObjectKey, Object) -> Option<T> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (reached, _) = watch::channel(Revision::ZERO);
        Arc::new(Self { resource, read: Box::new(read), known: RwLock::default(), reached })
    }

    /// All of one namespace; the empty text is where objects without one are.
    pub fn of(&self, namespace: &str) -> Option<Known<T>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(namespace).cloned()
    }

    fn set(&self, key: &ObjectKey, value: Option<&[u8]>) {
        let item = self.item(key, value);
        put(&mut self.known.write().unwrap_or_else(PoisonError::into_inner), key, item);
    }

    fn item(&self, key: &ObjectKey, value: Option<&[u8]>) -> Option<T> {
        let parsed = value.and_then(|value| serde_json::from_slice(value).ok());
        parsed.and_then(|object| (self.read)(key, object))
    }

    /// Reads all objects, as of one revision, and watches from there.
    async fn read_all(&self, store: &Store) -> Result<Watch, store::Error> {
        let mut query = ListQuery {
            resource: self.resource.clone(),
            namespace: None,
            selector: Selector::default(),
            at: None,
            after: None,
            limit: PAGE,
        };
        // What is known stays until all is read again: a plugin that knows nothing meanwhile would let everything pass.
        let mut fresh = BTreeMap::new();
        let revision = loop {
            let page = store.list(&query).await?;
            for item in &page.items {
                put(&mut fresh, &item.key, self.item(&item.key, Some(&item.value)));
            }
            match page.items.last() {
                Some(last) if page.more => {
                    let (namespace, name) = (last.key.namespace.clone(), last.key.name.clone());
                    (query.after, query.at) = (Some(Position { namespace, name }), Some(page.revision));
                }
                _ => break page.revision,
            }
        };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        self.reached.send_replace(revision);
        let (resource, selector) = (self.resource.clone(), Selector::default());
        store.watch(WatchScope { resource, namespace: None, name: None, selector }, revision).await
    }

    async fn follow(self: Arc<Self>, store: Store, mut watch: Watch) {
        loop {
            match watch.next().await {
                Ok(events) => {
                    for event in &events {
                        let is_there = event.kind != EventKind::Deleted;
                        let value = is_there.then_some(&event.change.value);
                        self.set(&event.change.key, value.map(|value| &**value));
                    }
                    if let Some(last) = events.last() {
                        self.reached.send_replace(last.change.revision);
                    }
                }
                Err(store::Error::Expired { .. }) => match self.read_all(&store).await {
                    Ok(again) => watch = again,
                    Err(error) => self.pause(&error).await,
                },
                Err(error) => self.pause(&error).await,
            }
        }
    }

    async fn pause(&self, error: &store::Error) {
        tracing::warn!(%error, resource = %self.resource, "admission cannot follow a resource; trying again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Keeps an item under the name of its object, or forgets it.
fn put<T>(known: &mut BTreeMap<String, Known<T>>, key: &ObjectKey, item: Option<T>) {
    let of = known.entry(key.namespace.clone()).or_default();
    match item {
        Some(item) => drop(Arc::make_mut(of).insert(key.name.clone(), Arc::new(item))),
        None => drop(Arc::make_mut(of).remove(&key.name)),
    }
    if of.is_empty() {
        known.remove(&key.namespace);
    }
}

/// A resource that is followed, whatever is known of its objects.
pub(crate) trait Follows: Send + Sync {
    /// Of which resource.
    fn resource(&self) -> &Resource;

    /// Where it is in the log.
    fn reached(&self) -> watch::Receiver<Revision>;

    /// Reads what there is, and gives the task that follows.
    fn start(self: Arc<Self>, store: Store) -> BoxFuture<'static, Result<BoxFuture<'static, ()>, Error>>;
}

impl<T: Send + Sync + 'static> Follows for Mirror<T> {
    fn resource(&self) -> &Resource {
        &self.resource
    }

    fn reached(&self) -> watch::Receiver<Revision> {
        self.reached.subscribe()
    }

    fn start(self: Arc<Self>, store: Store) -> BoxFuture<'static, Result<BoxFuture<'static, ()>, Error>> {
        Box::pin(async move {
            let watch = self.read_all(&store).await.map_err(store_error)?;
            let following: BoxFuture<'static, ()> = Box::pin(self.follow(store, watch));
            Ok(following)
        })
    }
}

/// How far this server has followed each resource that plugins follow.
#[derive(Default)]
pub(crate) struct Positions(HashMap<Resource, Vec<watch::Receiver<Revision>>>);

impl Positions {
    pub fn add(&mut self, followed: &dyn Follows) {
        self.0.entry(followed.resource().clone()).or_default().push(followed.reached());
    }

    /// Waits until a write is followed, but not for ever: a database that has just taken a write may be out of reach for who
    /// reads it.
    pub async fn reach(&self, resource: &Resource, revision: Revision) {
        for position in self.0.get(resource).into_iter().flatten() {
            let mut position = position.clone();
            let reached = position.wait_for(|reached| *reached >= revision);
            if timeout(PATIENCE, reached).await.is_err() {
                tracing::warn!(%resource, %revision, "a write is not yet followed by admission");
            }
        }
    }
}
