//! Informers of admission plugins: caches of the fields that plugins need of other objects.
//!
//! A write of such an object returns when this server's cache has it, so it applies to the next request.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use model::error::Error;
use model::{ObjectKey, Resource};
use store::{Event, EventKind, Store, Stored};

use crate::informer::{Index, Informer, Position};
use crate::registry::Object;
use crate::verbs::store_error;

/// The cached values of one namespace, by object name.
pub(crate) type CachedObjects<T> = Arc<BTreeMap<String, Arc<T>>>;

/// Extracts the cached value of an object; `None` if the object is irrelevant.
type Read<T> = Box<dyn Fn(&ObjectKey, Object) -> Option<T> + Send + Sync>;

/// The informer cache of one resource. Objects that cannot be parsed are left out.
pub(crate) struct InformerCache<T> {
    resource: Resource,
    read: Read<T>,
    /// By namespace; empty for cluster-scoped objects.
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

    /// The cached values of a namespace; empty for cluster-scoped objects.
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

/// Inserts the value of an object, or removes it.
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

/// The informer of a resource, for any type of cached value.
pub(crate) trait PluginInformer: Send + Sync {
    /// The resource of the informer.
    fn resource(&self) -> &Resource;

    /// The position of the informer.
    fn position(&self) -> &Position;

    /// Fills the cache and returns the task that keeps it current.
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
