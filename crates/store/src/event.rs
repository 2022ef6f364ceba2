//! What a watch gives: changes, and what each of them means to whoever selects only some objects.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use model::encoded::with_revision;
use model::{ObjectKey, Resource, Revision, Selector};
use tokio::sync::OnceCell;

use crate::engine::Engine;
use crate::types::{Action, Change, Error};

/// Which changes a watch is about.
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

/// What a change means to a watch.
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
    /// What a change means here; `None` if it means nothing.
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
    /// What it means to this watch.
    pub kind: EventKind,
    /// The change, which all watches share.
    pub change: Arc<SharedChange>,
    /// Where the object left the selection by an update: the last version that was selected, with the revision of that update.
    last_selected: Option<Bytes>,
}

impl Event {
    /// The object to show.
    ///
    /// For an object that is no longer selected that is its last selected version, with the revision of the change: so
    /// Kubernetes does it, because the watcher may not be allowed to see what the object became.
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
}

impl SharedChange {
    /// Nothing is encoded yet.
    pub fn new(change: Change) -> Self {
        Self { change, frames: Mutex::new(Vec::new()), previous: OnceCell::new() }
    }

    /// The encoding in a slot. It is made once for all watches; whoever chooses the slot numbers gives each format and each
    /// [`EventKind`] its own.
    pub fn frame(&self, slot: u32, encode: impl FnOnce(&Change) -> Bytes) -> Bytes {
        // The lock is held while encoding, so that a thousand watches do not all encode at once. After a panic in an
        // encoder the list is still whole.
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, frame)) = frames.iter().find(|(taken, _)| *taken == slot) {
            return frame.clone();
        }
        let frame = encode(&self.change);
        frames.push((slot, frame.clone()));
        frame
    }

    /// The version that the change replaced, with the revision of the change. It is loaded once for all watches.
    async fn previous_value(&self, engine: &dyn Engine) -> Result<Bytes, Error> {
        let load = || async {
            // Just before the change the replaced version was current. That state is kept as long as the change is.
            let before = Revision(self.revision.0 - 1);
            let stored = engine.get(&self.key, Some(before)).await?.ok_or_else(|| Error::Corrupt {
                reason: format!("version {} is missing from the history", self.change.previous),
            })?;
            Ok(with_revision(&stored.value, stored.version_at, self.revision))
        };
        self.previous.get_or_try_init(load).await.cloned()
    }

    /// About how much memory it takes. Its frames are about as large as its value, so the value counts twice.
    pub(crate) fn size(&self) -> usize {
        let pairs = |attributes: &model::Attributes| -> usize {
            let pairs = attributes.labels().iter().chain(attributes.fields());
            pairs.map(|(key, value)| 48 + key.len() + value.len()).sum()
        };
        512 + 2 * self.value.len() + pairs(&self.attributes) + pairs(&self.previous_attributes)
    }
}

impl Deref for SharedChange {
    type Target = Change;

    fn deref(&self) -> &Change {
        &self.change
    }
}
