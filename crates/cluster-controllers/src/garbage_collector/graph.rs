//! The graph of owners and dependents: objects with owners, and objects that wait for their dependents. Others are not
//! cached.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;

use super::Key;
use super::decide::Propagation;
use controller::discovery::ServedResource;

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// The fields of every object that the garbage collector reads.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CollectedObject {
    pub(super) metadata: Metadata,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) owner_references: Vec<OwnerReference>,
    pub(super) finalizers: Vec<String>,
    pub(super) deletion_timestamp: Option<String>,
}

impl Metadata {
    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    fn propagation(&self) -> Propagation {
        if self.has_finalizer(ORPHAN) {
            Propagation::Orphan
        } else if self.has_finalizer(FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        }
    }

    pub(super) fn ending(&self) -> Ending {
        match self.deletion_timestamp {
            None => Ending::No,
            Some(_) if self.has_finalizer(ORPHAN) => Ending::Orphaning,
            Some(_) if self.has_finalizer(FOREGROUND) => Ending::Foreground,
            Some(_) => Ending::Plain,
        }
    }
}

/// An owner reference.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OwnerReference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) block_owner_deletion: bool,
}

impl OwnerReference {
    fn coordinates(&self) -> Coordinates {
        let Self { api_version, kind, name, uid, .. } = self.clone();
        Coordinates { api_version, kind, name, uid }
    }

    fn is_at(&self, at: &Coordinates) -> bool {
        self.uid == at.uid
            && self.name == at.name
            && self.kind == at.kind
            && self.api_version == at.api_version
    }
}

/// The coordinates of an owner in a reference. Its namespace, if it has one, is that of the dependent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Coordinates {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// The deletion state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// It waits for finalizers of other controllers.
    Plain,
    /// It waits for the deletion of its dependents.
    Foreground,
    /// It waits until its dependents are orphaned.
    Orphaning,
}

/// A uid in compact form. It is only a key of the graph: deletions use the full uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Uid(u128);

impl Uid {
    pub(super) fn of(text: &str) -> Self {
        let mut value = 0u128;
        let mut digits = 0;
        for byte in text.bytes().filter(|byte| *byte != b'-') {
            let Some(digit) = (byte as char).to_digit(16) else { return Self::hashed(text) };
            value = value << 4 | u128::from(digit);
            digits += 1;
        }
        if digits == 32 { Self(value) } else { Self::hashed(text) }
    }

    /// The hash (FNV-1a) of a uid that is not a UUID.
    fn hashed(text: &str) -> Self {
        let step = |hash: u128, byte: u8| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        };
        Self(text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step))
    }
}

/// An object of the graph.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) of: Arc<ServedResource>,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) resource_version: Box<str>,
    pub(super) owners: Box<[Owner]>,
    pub(super) ending: Ending,
    /// The propagation policy of its own deletion.
    pub(super) propagation: Propagation,
    /// The number of the list of its type in which it was last observed.
    reading: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) at: Arc<Coordinates>,
    pub(super) id: Uid,
    pub(super) is_blocking: bool,
}

/// An object that is an owner.
#[derive(Debug)]
struct Owned {
    /// The coordinates in its first dependent, with that dependent's namespace.
    at: Arc<Coordinates>,
    namespace: Box<str>,
    dependents: HashSet<Uid>,
    /// The number of dependents that block its deletion.
    blocking: usize,
    /// Whether its deletion was observed: a uid does not come back.
    is_gone: bool,
    /// Whether it was looked up at the coordinates of its first dependent and not found.
    is_missed: bool,
}

impl Owned {
    fn new(reference: &OwnerReference, namespace: &str) -> Self {
        Self {
            at: Arc::new(reference.coordinates()),
            namespace: namespace.into(),
            dependents: HashSet::new(),
            blocking: 0,
            is_gone: false,
            is_missed: false,
        }
    }
}

/// The graph.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    owned: HashMap<Uid, Owned>,
}

impl Graph {
    /// Adds or updates an object. Returns the keys to enqueue.
    pub(super) fn observe(&mut self, of: &Arc<ServedResource>, metadata: Metadata, reading: u32) -> Vec<Key> {
        let id = Uid::of(&metadata.uid);
        let ending = metadata.ending();
        let is_waiting = matches!(ending, Ending::Foreground | Ending::Orphaning);
        let mut keys = Vec::new();
        let before = self.nodes.remove(&id);
        let was = before.as_ref().map_or(Ending::No, |node| node.ending);
        let is_known = before.is_some();
        let old = before.map(|node| node.owners).unwrap_or_default();
        if !is_known && metadata.owner_references.is_empty() && !is_waiting {
            return keys;
        }
        let owners = self.link(id, &old, &metadata, &mut keys);
        if !owners.is_empty() || is_waiting {
            let propagation = metadata.propagation();
            let Metadata { name, namespace, uid, resource_version, .. } = metadata;
            let node = Node {
                propagation,
                of: Arc::clone(of),
                namespace: namespace.into(),
                name: name.into(),
                uid: uid.into(),
                resource_version: resource_version.into(),
                owners,
                ending,
                reading,
            };
            self.nodes.insert(id, node);
        }
        if ending != was && is_waiting {
            if ending == Ending::Foreground {
                keys.extend(self.dependents(id).map(Key::Object));
            }
            keys.push(Key::Object(id));
        }
        keys
    }

    /// Adds an object to the dependents of its owners, and removes it from those of its former owners.
    fn link(&mut self, id: Uid, old: &[Owner], new: &Metadata, keys: &mut Vec<Key>) -> Box<[Owner]> {
        let mut owners: Vec<Owner> = Vec::with_capacity(new.owner_references.len());
        for reference in &new.owner_references {
            let owner_id = Uid::of(&reference.uid);
            // An object may refer to an owner twice, in two versions of its kind: one reference is kept.
            if owners.iter().any(|known| known.id == owner_id) {
                continue;
            }
            let was = old.iter().find(|known| known.id == owner_id);
            let is_first = !self.owned.contains_key(&owner_id);
            let is_waiting = self.nodes.get(&owner_id).is_some_and(|node| node.ending == Ending::Foreground);
            let owned = self.owned.entry(owner_id).or_insert_with(|| Owned::new(reference, &new.namespace));
            let is_agreed = reference.is_at(&owned.at);
            let at = if is_agreed { Arc::clone(&owned.at) } else { Arc::new(reference.coordinates()) };
            let is_blocking = reference.block_owner_deletion;
            let was_blocking = was.is_some_and(|was| was.is_blocking);
            owned.dependents.insert(id);
            owned.blocking += usize::from(is_blocking);
            owned.blocking -= usize::from(was_blocking);
            let is_odd = owned.is_gone || owned.is_missed || !is_agreed || *owned.namespace != *new.namespace;
            if is_first {
                keys.push(Key::Owner(owner_id));
            } else if is_odd && was.is_none_or(|was| *was.at != *at) || is_waiting && was.is_none() {
                // A dependent that is added to a waiting owner was not among those that were enqueued.
                keys.push(Key::Object(id));
            }
            if was_blocking && owned.blocking == 0 {
                keys.push(Key::Object(owner_id));
            }
            owners.push(Owner { at, id: owner_id, is_blocking });
        }
        let lost: Vec<&Owner> =
            old.iter().filter(|was| !owners.iter().any(|owner| owner.id == was.id)).collect();
        for was in lost {
            keys.extend(self.unlink(id, was));
        }
        owners.into()
    }

    /// Removes a dependent. Returns the owner, if it waited for it.
    fn unlink(&mut self, id: Uid, owner: &Owner) -> Option<Key> {
        let owned = self.owned.get_mut(&owner.id)?;
        owned.dependents.remove(&id);
        owned.blocking -= usize::from(owner.is_blocking);
        let is_unblocked = owner.is_blocking && owned.blocking == 0;
        if owned.dependents.is_empty() {
            self.owned.remove(&owner.id);
        }
        let is_waiting = self.nodes.get(&owner.id).is_some_and(|node| node.ending == Ending::Foreground);
        (is_unblocked && is_waiting).then_some(Key::Object(owner.id))
    }

    /// Removes an object. Returns the keys to enqueue.
    pub(super) fn remove_observed(&mut self, uid: &str) -> Vec<Key> {
        self.remove(Uid::of(uid))
    }

    fn remove(&mut self, id: Uid) -> Vec<Key> {
        let mut keys: Vec<Key> = self.dependents(id).map(Key::Object).collect();
        if let Some(owned) = self.owned.get_mut(&id) {
            owned.is_gone = true;
        }
        if let Some(node) = self.nodes.remove(&id) {
            keys.extend(node.owners.iter().filter_map(|owner| self.unlink(id, owner)));
        }
        keys
    }

    /// All objects of a type were listed again: removes those that are missing. Owners of that type become uncertain
    /// and are looked up.
    pub(super) fn relisted(&mut self, of: &ServedResource, reading: u32) -> Vec<Key> {
        let is_missing = |node: &Node| node.of.resource == of.resource && node.reading != reading;
        let missing: Vec<Uid> =
            self.nodes.iter().filter(|(_, node)| is_missing(node)).map(|(id, _)| *id).collect();
        let mut keys: Vec<Key> = missing.into_iter().flat_map(|id| self.remove(id)).collect();
        let unsure = self.owned.iter().filter(|(_, owned)| owned.at.kind == of.resource.kind);
        keys.extend(unsure.map(|(id, _)| Key::Owner(*id)));
        keys
    }

    /// Removes the objects of a type that is no longer watched. Returns the owners that waited for them.
    pub(super) fn remove_type(&mut self, of: &ServedResource) -> Vec<Key> {
        let nodes = self.nodes.iter().filter(|(_, node)| node.of.resource == of.resource);
        let ids: Vec<Uid> = nodes.map(|(id, _)| *id).collect();
        let mut keys = Vec::new();
        for id in ids {
            if let Some(node) = self.nodes.remove(&id) {
                keys.extend(node.owners.iter().filter_map(|owner| self.unlink(id, owner)));
            }
        }
        keys
    }

    pub(super) fn node(&self, id: Uid) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// A dependent of this owner, with its coordinates of the owner: preferably one that agrees with the first
    /// dependent.
    pub(super) fn any_dependent(&self, owner: Uid) -> Option<(Arc<Coordinates>, &Node)> {
        let owned = self.owned.get(&owner)?;
        let mut nodes = owned.dependents.iter().filter_map(|id| self.nodes.get(id));
        let at =
            |node: &Node| node.owners.iter().find(|known| known.id == owner).map(|known| known.at.clone());
        let agrees =
            |node: &&Node| *node.namespace == *owned.namespace && at(node).is_some_and(|at| *at == *owned.at);
        let dependent = nodes.clone().find(agrees).or_else(|| nodes.next())?;
        Some((at(dependent)?, dependent))
    }

    /// Records that the owner was not found at the coordinates in its first dependent. Returns all dependents for
    /// reprocessing; later dependents of this owner are enqueued when they are added.
    pub(super) fn mark_not_found(&mut self, owner: Uid) -> Vec<Key> {
        if let Some(owned) = self.owned.get_mut(&owner) {
            owned.is_missed = true;
        }
        self.dependents(owner).map(Key::Object).collect()
    }

    /// Whether the deletion of an owner was observed.
    pub(super) fn is_gone(&self, owner: Uid) -> bool {
        self.owned.get(&owner).is_some_and(|owned| owned.is_gone)
    }

    pub(super) fn dependents(&self, owner: Uid) -> impl Iterator<Item = Uid> {
        self.owned.get(&owner).into_iter().flat_map(|owned| owned.dependents.iter().copied())
    }

    /// The dependents that block the deletion of an owner.
    pub(super) fn blocking(&self, owner: Uid) -> Vec<(Uid, Ending)> {
        let is_blocking =
            |node: &Node| node.owners.iter().any(|known| known.id == owner && known.is_blocking);
        let nodes = self.dependents(owner).filter_map(|id| Some((id, self.nodes.get(&id)?)));
        nodes.filter(|(_, node)| is_blocking(node)).map(|(id, node)| (id, node.ending)).collect()
    }

    /// The number of cached objects and of owners.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.nodes.len(), self.owned.len())
    }
}
