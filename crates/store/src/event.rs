//! Events of a watch: changes, and their meaning to a watch that selects only some objects.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use model::encoded::with_revision;
use model::{ObjectKey, Resource, Revision, Selector};
use tokio::sync::{Notify, OnceCell};

use crate::engine::Engine;
use crate::types::{Action, Change, Error};

/// The changes that a watch is about.
#[derive(Clone, Debug)]
pub struct WatchScope {
    /// The resource.
    pub resource: Resource,
    /// Only this namespace, or all.
    pub namespace: Option<String>,
    /// Only objects of this name, or all.
    pub name: Option<String>,
    /// Only these objects.
    pub selector: Selector,
}

/// Meaning of a change to a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The object was created, or has come to be selected.
    Added,
    /// The object was selected before and still is.
    Modified,
    /// The object was deleted, or is no longer selected.
    Deleted,
}

impl WatchScope {
    /// All objects of a resource.
    pub fn all(resource: Resource) -> Self {
        Self { resource, namespace: None, name: None, selector: Selector::default() }
    }

    /// One object.
    pub fn one(ObjectKey { resource, namespace, name }: ObjectKey) -> Self {
        Self { resource, namespace: Some(namespace), name: Some(name), selector: Selector::default() }
    }

    /// The meaning of a change to this scope; `None` if it is outside of it.
    pub fn kind(&self, change: &Change) -> Option<EventKind> {
        if !self.covers(&change.key) {
            return None;
        }
        let is = change.action != Action::Delete && self.selector.matches(&change.key, &change.attributes);
        let was = change.action != Action::Create
            && self.selector.matches(&change.key, &change.previous_attributes);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(EventKind::Added),
            (true, true) => Some(EventKind::Modified),
            (true, false) => Some(EventKind::Deleted),
        }
    }

    fn covers(&self, key: &ObjectKey) -> bool {
        self.resource == key.resource
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
    }
}

/// A change as one watch sees it.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its meaning to this watch.
    pub kind: EventKind,
    /// The change, which all watches share.
    pub change: Arc<SharedChange>,
    /// Set if an update took the object out of the selection: its last selected version, with the revision of
    /// that update.
    last_selected: Option<Bytes>,
}

impl Event {
    /// The object to show.
    ///
    /// For an object that is no longer selected it is the last selected version, with the revision of the
    /// change, as in Kubernetes: the watcher may not be allowed to see the new state.
    pub fn value(&self) -> Bytes {
        self.last_selected.as_ref().unwrap_or(&self.change.value).clone()
    }

    /// Makes the event of a change, and loads the last selected version where it is needed.
    pub(crate) async fn load(
        kind: EventKind,
        change: Arc<SharedChange>,
        engine: &dyn Engine,
    ) -> Result<Self, Error> {
        let left = kind == EventKind::Deleted && change.action != Action::Delete;
        let last_selected = if left { Some(change.previous_value(engine).await?) } else { None };
        Ok(Self { kind, change, last_selected })
    }
}

/// A change that all watches share, with its encodings.
#[derive(Debug)]
pub struct SharedChange {
    change: Change,
    frames: Mutex<Vec<(u32, Bytes)>>,
    previous: OnceCell<Bytes>,
    /// The memory account of the ring, set while the change is in it.
    ring: OnceLock<Arc<RingMemory>>,
    /// The bytes counted there; [`GONE`] once it has left the ring.
    counted: AtomicUsize,
}

/// No change has this size.
const GONE: usize = usize::MAX;

/// The memory of a frame beside its bytes.
const FRAME: usize = 64;

/// Memory of the recent changes and of everything derived from them, counted as it is allocated.
#[derive(Debug)]
pub(crate) struct RingMemory {
    bytes: AtomicUsize,
    limit: usize,
    over: Notify,
}

impl RingMemory {
    /// For at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), limit, over: Notify::new() }
    }

    /// The bytes in use.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether they are more than the limit.
    pub fn is_over(&self) -> bool {
        self.bytes() > self.limit
    }

    /// Waits until frames have brought it over the limit.
    pub async fn exceeded(&self) {
        self.over.notified().await;
    }
}

impl SharedChange {
    /// A change without encodings.
    pub fn new(change: Change) -> Self {
        Self {
            change,
            frames: Mutex::new(Vec::new()),
            previous: OnceCell::new(),
            ring: OnceLock::new(),
            counted: AtomicUsize::new(0),
        }
    }

    /// The encoding in a slot, made once for all watches. The caller assigns a slot to each format and
    /// [`EventKind`].
    pub fn frame(&self, slot: u32, encode: impl FnOnce(&Change) -> Bytes) -> Bytes {
        // The lock is held while encoding, so that a thousand watches do not all encode at once. After a panic in an
        // encoder the list is still whole.
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, frame)) = frames.iter().find(|(taken, _)| *taken == slot) {
            return frame.clone();
        }
        let frame = encode(&self.change);
        frames.push((slot, frame.clone()));
        self.grow(FRAME + frame.len());
        frame
    }

    /// Starts to count into the memory of the ring.
    pub(crate) fn enter(&self, memory: &Arc<RingMemory>) {
        let size = self.size();
        if self.ring.set(Arc::clone(memory)).is_ok() {
            memory.bytes.fetch_add(size, Ordering::Relaxed);
            self.counted.store(size, Ordering::Relaxed);
        }
    }

    /// Stops counting: watches that still hold the change account for it themselves.
    pub(crate) fn leave(&self) {
        let Some(memory) = self.ring.get() else { return };
        let counted = self.counted.swap(GONE, Ordering::Relaxed);
        if counted != GONE {
            memory.bytes.fetch_sub(counted, Ordering::Relaxed);
        }
    }

    /// Counts memory that was allocated for it.
    fn grow(&self, bytes: usize) {
        let Some(memory) = self.ring.get() else { return };
        // The ring's counter before the change's own: a concurrent `leave` subtracts no more than was added.
        let before = memory.bytes.fetch_add(bytes, Ordering::Relaxed);
        let counting = |counted: usize| (counted != GONE).then_some(counted.saturating_add(bytes));
        if self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counting).is_err() {
            memory.bytes.fetch_sub(bytes, Ordering::Relaxed);
        } else if before <= memory.limit && before + bytes > memory.limit {
            memory.over.notify_one();
        }
    }

    /// The version that the change replaced, with the revision of the change. It is loaded once for all
    /// watches.
    async fn previous_value(&self, engine: &dyn Engine) -> Result<Bytes, Error> {
        let load = || async {
            // Just before the change the replaced version was current. That state is kept as long as the change is.
            let before = Revision(self.revision.0 - 1);
            let stored = engine.get(&self.key, Some(before)).await?.ok_or_else(|| Error::Corrupt {
                reason: format!("version {} is missing from the history", self.change.previous),
            })?;
            let value = with_revision(&stored.value, stored.version_at, self.revision);
            self.grow(value.len());
            Ok(value)
        };
        self.previous.get_or_try_init(load).await.cloned()
    }

    /// About how much memory it takes without its frames.
    pub(crate) fn size(&self) -> usize {
        let pairs = |attributes: &model::Attributes| -> usize {
            let pairs = attributes.labels().iter().chain(attributes.fields());
            pairs.map(|(key, value)| 48 + key.len() + value.len()).sum()
        };
        512 + self.value.len() + pairs(&self.attributes) + pairs(&self.previous_attributes)
    }
}

impl Deref for SharedChange {
    type Target = Change;

    fn deref(&self) -> &Change {
        &self.change
    }
}
