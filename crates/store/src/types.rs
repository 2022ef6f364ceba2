//! What the store takes and gives: writes, pages, changes, errors.

use bytes::Bytes;
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};

/// One step of a transaction: a write, or what has to hold for it to happen.
#[derive(Clone, Debug)]
pub enum Write {
    /// The key must have no head.
    Create {
        /// Where.
        key: ObjectKey,
        /// The uid of this life of the name.
        uid: Uid,
        /// What selectors may look at.
        attributes: Attributes,
        /// The object.
        body: Encoded,
    },
    /// The key must have a head that satisfies `expect`.
    Update {
        /// Where.
        key: ObjectKey,
        /// What must hold for the head.
        expect: Precondition,
        /// What selectors may look at.
        attributes: Attributes,
        /// The object as it shall be.
        body: Encoded,
    },
    /// The key must have a head that satisfies `expect`; afterwards it has none.
    Delete {
        /// Where.
        key: ObjectKey,
        /// What must hold for the head.
        expect: Precondition,
        /// What selectors may look at in the last state.
        attributes: Attributes,
        /// The last state, which watchers get with the revision of the deletion.
        body: Encoded,
    },
    /// The key must have a head that satisfies `expect` and that `selector` selects; nothing is written. It sees the steps before
    /// it, those of the same transaction too.
    Require {
        /// Where.
        key: ObjectKey,
        /// What must hold for the head.
        expect: Precondition,
        /// What must hold for the labels and fields of the head.
        selector: Selector,
    },
}

impl Write {
    /// Where it writes, or looks.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Create { key, .. }
            | Self::Update { key, .. }
            | Self::Delete { key, .. }
            | Self::Require { key, .. } => key,
        }
    }

    /// Whether it changes something, if it happens.
    pub fn writes(&self) -> bool {
        !matches!(self, Self::Require { .. })
    }

    /// How many index entries it may write: one for each label and each selectable field.
    pub fn entries(&self) -> usize {
        match self {
            Self::Create { attributes, .. }
            | Self::Update { attributes, .. }
            | Self::Delete { attributes, .. } => attributes.len(),
            Self::Require { .. } => 0,
        }
    }

    /// About how much memory it takes, for queues that are bounded in bytes.
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

/// What must hold for the head that a write replaces or requires. The default holds for every head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The head has this revision.
    pub revision: Option<Revision>,
    /// The head has this uid.
    pub uid: Option<Uid>,
}

/// What a write became.
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
    /// Where it is.
    pub key: ObjectKey,
    /// The revision that wrote it.
    pub revision: Revision,
    /// The uid of this life of the name.
    pub uid: Uid,
    /// The object as readers get it.
    pub value: Bytes,
    /// Where in `value` the digits of the revision begin.
    pub version_at: usize,
}

/// A place in key order: a page begins behind it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The last namespace that was given out.
    pub namespace: String,
    /// The last name that was given out.
    pub name: String,
}

/// Which objects of a resource, and how many.
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
    /// At most so many objects. A page may hold fewer, for it is also bounded in bytes: `more` says whether it ended early.
    pub limit: usize,
}

/// Objects in key order.
#[derive(Clone, Debug)]
pub struct Page {
    /// The revision as of which it was read.
    pub revision: Revision,
    /// The objects, in key order.
    pub items: Vec<Stored>,
    /// Whether there are further objects behind the last one.
    pub more: bool,
    /// How many objects there are in the resource (or in the namespace of it) in all, whatever the selector,
    /// where the list is as of now; `None` for a list at an older revision.
    pub total: Option<u64>,
}

/// What a change did.
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
    /// The number that stands for it in a database.
    pub fn code(self) -> i16 {
        match self {
            Self::Create => 1,
            Self::Update => 2,
            Self::Delete => 3,
        }
    }

    /// Reads back what [`Action::code`] gave.
    pub fn from_code(code: i16) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete].into_iter().find(|action| action.code() == code)
    }
}

/// One record of the log.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its place in the log.
    pub revision: Revision,
    /// The object that changed.
    pub key: ObjectKey,
    /// The uid of this life of the name.
    pub uid: Uid,
    /// What happened.
    pub action: Action,
    /// The version that it replaced; [`Revision::ZERO`] for a create.
    pub previous: Revision,
    /// Labels and fields of this version.
    pub attributes: Attributes,
    /// Labels and fields of the version that it replaced; empty for a create.
    pub previous_attributes: Attributes,
    /// The object at this revision; for a delete its last state.
    pub value: Bytes,
    /// Where in `value` the digits of the revision begin.
    pub version_at: usize,
}

/// The clock of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// The newest committed revision.
    pub current: Revision,
    /// History up to and including this revision is gone: a list below it or a watch from below it is refused.
    pub compacted: Revision,
}

impl ClockState {
    /// Whether nothing was ever written: the clock of an empty database stands at 1.
    pub fn is_untouched(&self) -> bool {
        self.current <= Revision(1)
    }
}

/// Why the store did not do it.
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
        /// The key that was to be changed, or to be there.
        key: ObjectKey,
    },
    /// The head is another one than the precondition or the requirement asks for.
    #[error("{key} is at revision {actual_revision} with uid {actual_uid}")]
    Conflict {
        /// The key that was to be changed, or that was required.
        key: ObjectKey,
        /// The revision of its head.
        actual_revision: Revision,
        /// The uid of its head.
        actual_uid: Uid,
    },
    /// The revision lies in history that was compacted away.
    #[error("revision {requested} is below the compaction mark {compacted}")]
    Expired {
        /// The revision that was asked for.
        requested: Revision,
        /// The compaction mark.
        compacted: Revision,
    },
    /// The revision is one that the clock has not reached.
    #[error("revision {requested} lies ahead of the current revision {current}")]
    Future {
        /// The revision that was asked for.
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
    /// The connection to the database broke, or its answer did not come in time, while a commit was on its way: the write may or
    /// may not have happened. Repeating it may do it twice.
    #[error("it is not known whether the write was committed: {reason}")]
    OutcomeUnknown {
        /// The words of the database or of the operating system; for the log and for operators, free of values.
        reason: String,
    },
    /// The database cannot take the write now: its disk is full, it is read-only, or it is out of reach. The write did not happen.
    /// It may work later.
    #[error("the database is unavailable: {reason}")]
    Unavailable {
        /// What the database said; for the log and for operators, free of values.
        reason: String,
    },
    /// The database holds something that this program cannot read.
    #[error("the database is damaged: {reason}")]
    Corrupt {
        /// What was found.
        reason: String,
    },
    /// The database could not be opened.
    #[error("{reason}")]
    Open {
        /// One sentence that says what is wrong and what to do.
        reason: String,
    },
}
