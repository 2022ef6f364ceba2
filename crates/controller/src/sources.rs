//! The watches of a controller: they may come and go while it runs, and end with it.

use std::collections::{BTreeSet, HashMap};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::Result;
use crate::cache::Cache;
use crate::watch::{Event, Listener, ObjectKey, Target};
use crate::watches::{Membership, Watches};

/// What happened to an object.
#[derive(Debug)]
pub struct Change<'a, T> {
    /// Where it is.
    pub key: &'a ObjectKey,
    /// The object; its last state if it is gone.
    pub object: &'a T,
    /// What it was before, where a cache knows.
    pub before: Option<&'a T>,
    /// Whether it is gone.
    pub is_gone: bool,
}

/// The watches that run. Clones are the same.
#[derive(Clone)]
pub struct Sources(Arc<Shared>);

struct Shared {
    running: Mutex<Running>,
    /// How many have been started that have not seen all present objects yet.
    unsynced: watch::Sender<usize>,
}

#[derive(Default)]
struct Running {
    by_name: HashMap<String, Source>,
    has_ended: bool,
}

/// A watch that runs.
struct Source {
    pending: Arc<Pending>,
    _membership: Membership,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.pending.end();
    }
}

impl Default for Sources {
    fn default() -> Self {
        let unsynced = watch::Sender::new(0);
        Self(Arc::new(Shared { running: Mutex::default(), unsynced }))
    }
}

impl Sources {
    /// Starts a watch under a name, unless one with this name runs.
    pub fn start(
        &self,
        name: impl Into<String>,
        watches: &Watches,
        target: Target,
        listener: impl Listener + 'static,
    ) {
        let mut running = self.running();
        let name = name.into();
        if running.has_ended || running.by_name.contains_key(&name) {
            return;
        }
        let pending = Pending::new(&self.0.unsynced);
        let counted = Counted { pending: Arc::clone(&pending), listener };
        let source = Source { pending, _membership: watches.join(target, Box::new(counted)) };
        running.by_name.insert(name, source);
    }

    /// Ends the watch with this name, if it runs.
    pub fn stop(&self, name: &str) {
        self.running().by_name.remove(name);
    }

    /// Ends the watches whose names do not pass.
    pub fn retain(&self, mut keep: impl FnMut(&str) -> bool) {
        self.running().by_name.retain(|name, _| keep(name));
    }

    /// Waits until every watch has seen the objects that were there when it began.
    pub async fn synced(&self) {
        // This holds the sender, so that the channel is open.
        let _ = self.0.unsynced.subscribe().wait_for(|unsynced| *unsynced == 0).await;
    }

    /// Ends all of them, for good.
    pub(crate) fn end(&self) {
        let mut running = self.running();
        running.has_ended = true;
        running.by_name.clear();
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch that is counted until it has seen the present objects, or is no more.
struct Pending {
    unsynced: watch::Sender<usize>,
    has_ended: AtomicBool,
}

impl Pending {
    fn new(unsynced: &watch::Sender<usize>) -> Arc<Self> {
        unsynced.send_modify(|count| *count += 1);
        Arc::new(Self { unsynced: unsynced.clone(), has_ended: AtomicBool::new(false) })
    }

    fn end(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            self.unsynced.send_modify(|count| *count -= 1);
        }
    }
}

struct Counted<L> {
    pending: Arc<Pending>,
    listener: L,
}

impl<L: Listener> Listener for Counted<L> {
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        let heard = self.listener.hear(event);
        if matches!(event, Event::Synced) {
            self.pending.end();
        }
        heard
    }
}

/// Hands objects on as a view of them, and keeps nothing.
pub(crate) struct Passing<T, F> {
    each: F,
    view: PhantomData<fn() -> T>,
}

impl<T, F> Passing<T, F> {
    pub(crate) fn new(each: F) -> Self {
        Self { each, view: PhantomData }
    }
}

impl<T, F> Listener for Passing<T, F>
where
    T: DeserializeOwned + Send + Sync + 'static,
    F: FnMut(&Change<'_, T>) + Send,
{
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        let (key, line, is_gone) = match event {
            Event::Seen(key, line) => (key, line, false),
            Event::Gone(key, line) => (key, line, true),
            Event::Reset | Event::Synced | Event::NotServed => return Ok(()),
        };
        (self.each)(&Change { key, object: &*line.read()?, before: None, is_gone });
        Ok(())
    }
}

/// Keeps a view of all objects, and says what has changed in it.
pub(crate) struct Keeping<T, F> {
    each: F,
    cache: Cache<T>,
    /// The names that were there before the present objects came, and have not come again.
    missing: Option<BTreeSet<ObjectKey>>,
}

impl<T, F> Keeping<T, F> {
    pub(crate) fn new(cache: Cache<T>, each: F) -> Self {
        Self { each, cache, missing: None }
    }
}

impl<T, F> Keeping<T, F>
where
    F: FnMut(&Change<'_, T>) + Send,
{
    fn is_gone(&mut self, key: &ObjectKey, last: Option<&T>) {
        let before = self.cache.remove(key);
        if let Some(object) = last.or(before.as_deref()) {
            (self.each)(&Change { key, object, before: before.as_deref(), is_gone: true });
        }
    }
}

impl<T, F> Listener for Keeping<T, F>
where
    T: DeserializeOwned + Send + Sync + 'static,
    F: FnMut(&Change<'_, T>) + Send,
{
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        match event {
            Event::NotServed => {}
            Event::Reset => self.missing = Some(self.cache.keys()),
            Event::Synced => {
                for key in self.missing.take().unwrap_or_default() {
                    self.is_gone(&key, None);
                }
            }
            Event::Gone(key, line) => self.is_gone(key, line.read().ok().as_deref()),
            Event::Seen(key, line) => {
                let object = line.read()?;
                if let Some(missing) = &mut self.missing {
                    missing.remove(key);
                }
                let before = self.cache.insert(key.clone(), Arc::clone(&object));
                (self.each)(&Change { key, object: &*object, before: before.as_deref(), is_gone: false });
            }
        }
        Ok(())
    }
}
