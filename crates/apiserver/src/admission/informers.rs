//! What plugins know of other objects without reading them: small copies that follow the log.
//!
//! Who writes an object that plugins follow is answered when this server has seen the write: it holds at once.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use model::error::Error;
use model::{ObjectKey, Resource};
use store::{Event, EventKind, Store, Stored};

use crate::informer::{Index, Informer, Position};
use crate::registry::Object;
use crate::verbs::store_error;

/// What is known of the objects of one namespace, by name.
pub(crate) type CachedObjects<T> = Arc<BTreeMap<String, Arc<T>>>;

/// What is kept of an object; nothing of one that does not matter.
type Read<T> = Box<dyn Fn(&ObjectKey, Object) -> Option<T> + Send + Sync>;

/// What is known of the objects of one resource. An object that cannot be read is not known.
pub(crate) struct InformerCache<T> {
    resource: Resource,
    read: Read<T>,
    /// By namespace, which is empty for objects of none.
    known: RwLock<BTreeMap<String, CachedObjects<T>>>,
    position: Position,
}

impl<T: Send + Sync + 'static> InformerCache<T> {
    pub fn new(
        resource: Resource,
        read: impl Fn(&ObjectKey, Object) -> Option<T> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (read, position) = (Box::new(read), Position::default());
        Arc::new(Self { resource, read, known: RwLock::default(), position })
    }

    /// All of one namespace; the empty text is where objects without one are.
    pub fn of(&self, namespace: &str) -> Option<CachedObjects<T>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(namespace).cloned()
    }

    fn item(&self, key: &ObjectKey, value: Option<&[u8]>) -> Option<T> {
        let parsed = value.and_then(|value| serde_json::from_slice(value).ok());
        parsed.and_then(|object| (self.read)(key, object))
    }
}

impl<T: Send + Sync + 'static> Index for Arc<InformerCache<T>> {
    type Fresh = BTreeMap<String, CachedObjects<T>>;

    fn gather(&self, fresh: &mut Self::Fresh, object: Stored) {
        put(fresh, &object.key, self.item(&object.key, Some(&object.value)));
    }

    fn reset(&self, fresh: Self::Fresh) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    fn apply(&self, events: &[Event]) {
        for event in events {
            let (key, is_there) = (&event.change.key, event.kind != EventKind::Deleted);
            let item = self.item(key, is_there.then_some(&*event.change.value));
            put(&mut self.known.write().unwrap_or_else(PoisonError::into_inner), key, item);
        }
    }
}

/// Keeps an item under the name of its object, or forgets it.
fn put<T>(known: &mut BTreeMap<String, CachedObjects<T>>, key: &ObjectKey, item: Option<T>) {
    let of = known.entry(key.namespace.clone()).or_default();
    match item {
        Some(item) => drop(Arc::make_mut(of).insert(key.name.clone(), Arc::new(item))),
        None => drop(Arc::make_mut(of).remove(&key.name)),
    }
    if of.is_empty() {
        known.remove(&key.namespace);
    }
}

/// A resource with an informer, whatever is kept of its objects.
pub(crate) trait PluginInformer: Send + Sync {
    /// Of which resource.
    fn resource(&self) -> &Resource;

    /// Of the informer.
    fn position(&self) -> &Position;

    /// Reads what there is, and gives the task that follows.
    fn start(self: Arc<Self>, store: Store) -> BoxFuture<'static, Result<BoxFuture<'static, ()>, Error>>;
}

impl<T: Send + Sync + 'static> PluginInformer for InformerCache<T> {
    fn resource(&self) -> &Resource {
        &self.resource
    }

    fn position(&self) -> &Position {
        &self.position
    }

    fn start(self: Arc<Self>, store: Store) -> BoxFuture<'static, Result<BoxFuture<'static, ()>, Error>> {
        Box::pin(async move {
            let (resource, position) = (self.resource.clone(), self.position.clone());
            let following =
                Informer::new(resource, self, position).start(&store).await.map_err(store_error)?;
            let following: BoxFuture<'static, ()> = Box::pin(following);
            Ok(following)
        })
    }
}
