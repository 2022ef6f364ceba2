//! What a controller remembers of the objects that it watches.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use crate::watch::ObjectKey;

/// Views of all objects of a watch, as of the last change that was heard. Clones are the same cache.
pub struct Cache<T>(Arc<RwLock<BTreeMap<ObjectKey, Arc<T>>>>);

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Cache<T> {
    /// One object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.read(|objects| objects.get(key).cloned())
    }

    /// All objects with their keys, in order.
    #[must_use]
    pub fn all(&self) -> Vec<(ObjectKey, Arc<T>)> {
        self.read(|objects| objects.iter().map(|(key, object)| (key.clone(), Arc::clone(object))).collect())
    }

    /// The objects of a namespace with their names, in order.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Vec<(String, Arc<T>)> {
        let first = ObjectKey::new(namespace, "");
        self.read(|objects| {
            let from = objects.range((Bound::Included(first), Bound::Unbounded));
            let inside = from.take_while(|(key, _)| key.namespace == namespace);
            inside.map(|(key, object)| (key.name.clone(), Arc::clone(object))).collect()
        })
    }

    pub(crate) fn keys(&self) -> BTreeSet<ObjectKey> {
        self.read(|objects| objects.keys().cloned().collect())
    }

    pub(crate) fn insert(&self, key: ObjectKey, object: Arc<T>) -> Option<Arc<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, object)
    }

    pub(crate) fn remove(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    fn read<A>(&self, look: impl FnOnce(&BTreeMap<ObjectKey, Arc<T>>) -> A) -> A {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
