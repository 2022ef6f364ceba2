//! Inputs and results of the store: writes, pages, changes, errors.

use bytes::Bytes;
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};

/// One step of a transaction: a write, or a requirement that has to hold for it to happen.
#[derive(Clone, Debug)]
pub enum Write {
    /// The key must have no head.
    Create {
        /// The object's key.
        key: ObjectKey,
        /// The uid of this life of the name.
        uid: Uid,
        /// The attributes that selectors match.
        attributes: Attributes,
        /// The object.
        body: Encoded,
    },
    /// The key must have a head that satisfies `expect`.
    Update {
        /// The object's key.
        key: ObjectKey,
        /// Precondition on the head.
        expect: Precondition,
        /// The attributes that selectors match.
        attributes: Attributes,
        /// The new object.
        body: Encoded,
    },
    /// The key must have a head that satisfies `expect`; afterwards it has none.
    Delete {
        /// The object's key.
        key: ObjectKey,
        /// Precondition on the head.
        expect: Precondition,
        /// The attributes of the last state, which selectors match.
        attributes: Attributes,
        /// The last state, which watchers get with the revision of the deletion.
        body: Encoded,
    },
    /// The key must have a head that satisfies `expect` and that `selector` selects; nothing is written. It sees the steps before
    /// it, those of the same transaction too.
    Require {
        /// The object's key.
        key: ObjectKey,
        /// Precondition on the head.
        expect: Precondition,
        /// Condition on the labels and fields of the head.
        selector: Selector,
    },
}

impl Write {
    /// The key that it writes, or requires.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Create { key, .. }
            | Self::Update { key, .. }
            | Self::Delete { key, .. }
            | Self::Require { key, .. } => key,
        }
    }

    /// Whether it is a write and not a requirement.
    pub fn writes(&self) -> bool {
        !matches!(self, Self::Require { .. })
    }

    /// Number of index entries that it may write: one for each label and each selectable field.
    pub fn entries(&self) -> usize {
        match self {
            Self::Create { attributes, .. }
            | Self::Update { attributes, .. }
            | Self::Delete { attributes, .. } => attributes.len(),
            Self::Require { .. } => 0,
        }
    }

    /// Approximate memory, for queues that are bounded in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Create { body, attributes, .. }
            | Self::Update { body, attributes, .. }
            | Self::Delete { body, attributes, .. } => {
                let pairs = attributes.labels().iter().chain(attributes.fields());
                512 + body.len() + pairs.map(|(key, value)| 64 + key.len() + value.len()).sum::<usize>()
            }
            Self::Require { .. } => 256,
        }
    }
}

/// Condition on the head that a write replaces or requires. The default holds for every head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The head has this revision.
    pub revision: Option<Revision>,
    /// The head has this uid.
    pub uid: Option<Uid>,
}

/// Result of a write.
#[derive(Clone, Debug)]
pub struct Written {
    /// The revision that it got.
    pub revision: Revision,
    /// The object with that revision in it, as readers get it.
    pub value: Bytes,
}

/// One version of an object.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its key.
    pub key: ObjectKey,
    /// The revision that wrote it.
    pub revision: Revision,
    /// The uid of this life of the name.
    pub uid: Uid,
    /// The object as readers get it.
    pub value: Bytes,
    /// Offset in `value` of the digits of the revision.
    pub version_at: usize,
}

/// A position in key order: a page begins behind it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The last namespace that was returned.
    pub namespace: String,
    /// The last name that was returned.
    pub name: String,
}

/// Query for a page of a resource's objects.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// The resource.
    pub resource: Resource,
    /// Only this namespace, or all.
    pub namespace: Option<String>,
    /// Only these objects.
    pub selector: Selector,
    /// As of this revision, or as of now.
    pub at: Option<Revision>,
    /// Only objects behind this place.
    pub after: Option<Position>,
    /// At most this many objects. A page may hold fewer, because it is also bounded in bytes: `more` says
    /// whether it ended early.
    pub limit: usize,
}

/// Objects in key order.
#[derive(Clone, Debug)]
pub struct Page {
    /// The revision at which it was read.
    pub revision: Revision,
    /// The objects, in key order.
    pub items: Vec<Stored>,
    /// Whether there are further objects behind the last one.
    pub more: bool,
    /// Number of objects in the resource (or in its namespace), whatever the selector, for a list as of now;
    /// `None` for a list at an older revision.
    pub total: Option<u64>,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A new head.
    Create,
    /// Another version of a head.
    Update,
    /// No head any more.
    Delete,
}

impl Action {
    /// Its number in a database.
    pub fn code(self) -> i16 {
        match self {
            Self::Create => 1,
            Self::Update => 2,
            Self::Delete => 3,
        }
    }

    /// The inverse of [`Action::code`].
    pub fn from_code(code: i16) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete].into_iter().find(|action| action.code() == code)
    }
}

/// A change: one record of the log.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its place in the log.
    pub revision: Revision,
    /// The object that changed.
    pub key: ObjectKey,
    /// The uid of this life of the name.
    pub uid: Uid,
    /// The kind of change.
    pub action: Action,
    /// The version that it replaced; [`Revision::ZERO`] for a create.
    pub previous: Revision,
    /// Labels and fields of this version.
    pub attributes: Attributes,
    /// Labels and fields of the version that it replaced; empty for a create.
    pub previous_attributes: Attributes,
    /// The object at this revision; for a delete its last state.
    pub value: Bytes,
    /// Offset in `value` of the digits of the revision.
    pub version_at: usize,
}

/// The clock of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// The newest committed revision.
    pub current: Revision,
    /// History up to and including this revision is gone: a list below it or a watch from below it is
    /// refused.
    pub compacted: Revision,
}

impl ClockState {
    /// Whether the database was never written to: its clock stands at 1.
    pub fn is_untouched(&self) -> bool {
        self.current <= Revision(1)
    }
}

/// Errors of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A create found a head.
    #[error("{key} already exists")]
    AlreadyExists {
        /// The key that was to be created.
        key: ObjectKey,
    },
    /// An update, a delete or a requirement found no head.
    #[error("{key} does not exist")]
    NotFound {
        /// The key that was to be changed, or was required.
        key: ObjectKey,
    },
    /// The head does not satisfy the precondition or the requirement.
    #[error("{key} is at revision {actual_revision} with uid {actual_uid}")]
    Conflict {
        /// The key that was to be changed, or that was required.
        key: ObjectKey,
        /// The revision of its head.
        actual_revision: Revision,
        /// The uid of its head.
        actual_uid: Uid,
    },
    /// The revision lies in compacted history.
    #[error("revision {requested} is below the compaction mark {compacted}")]
    Expired {
        /// The revision of the request.
        requested: Revision,
        /// The compaction mark.
        compacted: Revision,
    },
    /// The clock has not reached the revision yet.
    #[error("revision {requested} lies ahead of the current revision {current}")]
    Future {
        /// The revision of the request.
        requested: Revision,
        /// The newest revision.
        current: Revision,
    },
    /// The object is larger than the store keeps, or has too many labels. Nothing was written.
    #[error("{key} is too large: {reason}")]
    TooLarge {
        /// The key that was to be written.
        key: ObjectKey,
        /// The size and the limit, in words that clients may see.
        reason: String,
    },
    /// The connection to the database broke, or its answer did not come in time, during a commit: the write
    /// may or may not have happened. Repeating it may do it twice.
    #[error("it is not known whether the write was committed: {reason}")]
    OutcomeUnknown {
        /// The message of the database or of the operating system; for the log and for operators, free of
        /// values.
        reason: String,
    },
    /// The database cannot take the write now: its disk is full, it is read-only, or it is unreachable. The
    /// write did not happen. It may succeed later.
    #[error("the database is unavailable: {reason}")]
    Unavailable {
        /// The database's message; for the log and for operators, free of values.
        reason: String,
    },
    /// The database holds something that this program cannot read.
    #[error("the database is damaged: {reason}")]
    Corrupt {
        /// The finding.
        reason: String,
    },
    /// The database could not be opened.
    #[error("{reason}")]
    Open {
        /// One sentence with the problem and its remedy.
        reason: String,
    },
}
