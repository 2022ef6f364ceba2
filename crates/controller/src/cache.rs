//! The cache of an informer: views of all its objects, read by key, by namespace and by index.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::ObjectKey;

/// Views of all objects of an informer, as of the last event that it received. Clones are the same cache.
pub struct Cache<T>(Arc<RwLock<Objects<T>>>);

struct Objects<T> {
    by_key: BTreeMap<ObjectKey, Arc<T>>,
    indexes: Vec<Entries<T>>,
}

/// Computes the values under which an index has an object.
type IndexFn<T> = Box<dyn Fn(&ObjectKey, &T) -> Vec<String> + Send + Sync>;

struct Entries<T> {
    values_of: IndexFn<T>,
    by_value: BTreeMap<String, BTreeSet<ObjectKey>>,
}

/// An index of a [`Cache`].
pub struct Index<T> {
    cache: Cache<T>,
    number: usize,
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), number: self.number }
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(Objects { by_key: BTreeMap::new(), indexes: Vec::new() })))
    }
}

impl<T> Cache<T> {
    /// One object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.read().by_key.get(key).cloned()
    }

    /// All objects with their keys, in order.
    #[must_use]
    pub fn all(&self) -> Vec<(ObjectKey, Arc<T>)> {
        let objects = self.read();
        objects.by_key.iter().map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    }

    /// The objects of a namespace with their names, in order.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Vec<(String, Arc<T>)> {
        let first = ObjectKey::new(namespace, "");
        let objects = self.read();
        let from = objects.by_key.range((Bound::Included(first), Bound::Unbounded));
        let inside = from.take_while(|(key, _)| key.namespace == namespace);
        inside.map(|(key, object)| (key.name.clone(), Arc::clone(object))).collect()
    }

    /// Adds an index: objects are found by the values that `values_of` computes of them, instead of by a search through all.
    #[must_use]
    pub fn index(
        &self,
        values_of: impl Fn(&ObjectKey, &T) -> Vec<String> + Send + Sync + 'static,
    ) -> Index<T> {
        let mut objects = self.write();
        let mut entries = Entries { values_of: Box::new(values_of), by_value: BTreeMap::new() };
        objects.by_key.iter().for_each(|(key, object)| entries.insert(key, object));
        objects.indexes.push(entries);
        Index { cache: self.clone(), number: objects.indexes.len() - 1 }
    }

    pub(crate) fn keys(&self) -> BTreeSet<ObjectKey> {
        self.read().by_key.keys().cloned().collect()
    }

    /// Stores the answer to a write of one's own, which the informer has not received yet. Returns the object before it.
    pub fn insert(&self, key: ObjectKey, object: Arc<T>) -> Option<Arc<T>> {
        let mut objects = self.write();
        let Objects { by_key, indexes } = &mut *objects;
        let old = by_key.insert(key.clone(), Arc::clone(&object));
        for entries in indexes {
            old.iter().for_each(|old| entries.remove(&key, old));
            entries.insert(&key, &object);
        }
        old
    }

    /// Drops an object that a delete of one's own removed. Returns it.
    pub fn remove(&self, key: &ObjectKey) -> Option<Arc<T>> {
        let mut objects = self.write();
        let Objects { by_key, indexes } = &mut *objects;
        let old = by_key.remove(key)?;
        indexes.iter_mut().for_each(|entries| entries.remove(key, &old));
        Some(old)
    }

    fn read(&self) -> RwLockReadGuard<'_, Objects<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Entries<T> {
    fn insert(&mut self, key: &ObjectKey, object: &T) {
        for value in (self.values_of)(key, object) {
            self.by_value.entry(value).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &ObjectKey, object: &T) {
        for value in (self.values_of)(key, object) {
            if let Some(keys) = self.by_value.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_value.remove(&value);
                }
            }
        }
    }
}

impl<T> Index<T> {
    /// The objects of a value with their keys, in order.
    #[must_use]
    pub fn get(&self, value: &str) -> Vec<(ObjectKey, Arc<T>)> {
        let objects = self.cache.read();
        let keys = objects.indexes[self.number].by_value.get(value).into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), Arc::clone(objects.by_key.get(key)?)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<T>(objects: &[(ObjectKey, Arc<T>)]) -> Vec<String> {
        objects.iter().map(|(key, _)| key.to_string()).collect()
    }

    #[test]
    fn an_index_follows_its_cache() {
        let cache = Cache::<&str>::default();
        cache.insert(ObjectKey::new("n", "early"), Arc::new("red"));
        let by_word = cache.index(|_, object| object.split(' ').map(str::to_owned).collect());
        cache.insert(ObjectKey::new("n", "b"), Arc::new("red blue"));
        cache.insert(ObjectKey::new("m", "c"), Arc::new("blue"));
        assert_eq!(names(&by_word.get("red")), ["n/b", "n/early"]);
        assert_eq!(names(&by_word.get("blue")), ["m/c", "n/b"]);
        cache.insert(ObjectKey::new("n", "b"), Arc::new("green"));
        assert_eq!(
            (names(&by_word.get("red")), names(&by_word.get("blue"))),
            (vec!["n/early".to_owned()], vec!["m/c".to_owned()])
        );
        cache.remove(&ObjectKey::new("m", "c"));
        assert!(by_word.get("blue").is_empty() && by_word.get("none").is_empty());
        assert!(!cache.read().indexes[0].by_value.contains_key("blue"), "an empty entry stays behind");
    }
}
