//! Event handlers: the receivers of an informer's events, and the two that most controllers need.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::cache::Cache;
use crate::raw_object::RawObject;
use crate::{ObjectKey, Result};

/// An event of an informer, in the order of kube's watcher: `Init`, the present objects, `InitDone`, then every change.
#[derive(Clone, Copy, Debug)]
pub enum WatchEvent<'a> {
    /// A list begins: `Apply` follows for every present object. Objects without one are gone.
    Init,
    /// An object is present or has changed.
    Apply(&'a ObjectKey, &'a RawObject<'a>),
    /// An object was deleted; this was its last state.
    Delete(&'a ObjectKey, &'a RawObject<'a>),
    /// The list is complete.
    InitDone,
    /// The server does not serve the resource (any more): there are no objects.
    NotServed,
}

/// A receiver of an informer's events.
pub trait EventHandler: Send {
    /// Handles one event, without waiting for anything. An error is logged, and the informer continues.
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()>;
}

impl<H: EventHandler + ?Sized> EventHandler for Box<H> {
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        (**self).handle(event)
    }
}

/// The change of one object, as a view of it.
#[derive(Debug)]
pub struct Delta<'a, T> {
    /// The object's namespace and name.
    pub key: &'a ObjectKey,
    /// The object; its last state if it was deleted.
    pub object: &'a T,
    /// The object before the change, where a cache has it.
    pub old: Option<&'a T>,
    /// Whether the object was deleted.
    pub is_deleted: bool,
    /// Whether the object is part of a list, not of a change: at the start, and when a watch had to begin anew.
    pub is_initial: bool,
}

/// Passes deltas on without keeping objects. After a list it calls `synced`: objects that were deleted while the watch was interrupted
/// have no delta, so that a controller which waits for deletions has to look again.
pub struct DeltaHandler<T, E, S> {
    each: E,
    synced: S,
    is_initial: bool,
    view: PhantomData<fn() -> T>,
}

impl<T, E, S> DeltaHandler<T, E, S>
where
    T: DeserializeOwned + Send + Sync + 'static,
    E: FnMut(&Delta<'_, T>) + Send,
    S: FnMut() + Send,
{
    /// A handler that calls `each` for every delta and `synced` after every list.
    pub fn new(each: E, synced: S) -> Self {
        Self { each, synced, is_initial: false, view: PhantomData }
    }
}

impl<T, E, S> EventHandler for DeltaHandler<T, E, S>
where
    T: DeserializeOwned + Send + Sync + 'static,
    E: FnMut(&Delta<'_, T>) + Send,
    S: FnMut() + Send,
{
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        let (key, raw, is_deleted) = match event {
            WatchEvent::Apply(key, raw) => (key, raw, false),
            WatchEvent::Delete(key, raw) => (key, raw, true),
            WatchEvent::Init => {
                self.is_initial = true;
                return Ok(());
            }
            WatchEvent::InitDone => {
                self.is_initial = false;
                (self.synced)();
                return Ok(());
            }
            WatchEvent::NotServed => return Ok(()),
        };
        let is_initial = self.is_initial;
        (self.each)(&Delta { key, object: &*raw.view()?, old: None, is_deleted, is_initial });
        Ok(())
    }
}

/// Keeps a view of all objects in a cache, and passes deltas on.
pub(crate) struct CacheHandler<T, F> {
    each: F,
    cache: Cache<T>,
    /// The keys of a list's beginning that the list has not mentioned yet.
    missing: Option<BTreeSet<ObjectKey>>,
}

impl<T, F> CacheHandler<T, F> {
    pub(crate) fn new(cache: Cache<T>, each: F) -> Self {
        Self { each, cache, missing: None }
    }
}

impl<T, F> CacheHandler<T, F>
where
    F: FnMut(&Delta<'_, T>) + Send,
{
    fn delete(&mut self, key: &ObjectKey, last: Option<&T>) {
        let old = self.cache.remove(key);
        if let Some(object) = last.or(old.as_deref()) {
            (self.each)(&Delta { key, object, old: old.as_deref(), is_deleted: true, is_initial: false });
        }
    }
}

impl<T, F> EventHandler for CacheHandler<T, F>
where
    T: DeserializeOwned + Send + Sync + 'static,
    F: FnMut(&Delta<'_, T>) + Send,
{
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        match event {
            WatchEvent::NotServed => {}
            WatchEvent::Init => self.missing = Some(self.cache.keys()),
            WatchEvent::InitDone => {
                for key in self.missing.take().unwrap_or_default() {
                    self.delete(&key, None);
                }
            }
            WatchEvent::Delete(key, raw) => self.delete(key, raw.view().ok().as_deref()),
            WatchEvent::Apply(key, raw) => {
                let object = raw.view()?;
                if let Some(missing) = &mut self.missing {
                    missing.remove(key);
                }
                let old = self.cache.insert(key.clone(), Arc::clone(&object));
                let (object, old, is_initial) = (&*object, old.as_deref(), self.missing.is_some());
                (self.each)(&Delta { key, object, old, is_deleted: false, is_initial });
            }
        }
        Ok(())
    }
}
