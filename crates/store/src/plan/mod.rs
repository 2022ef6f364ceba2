//! The planner, a pure function from a batch of transactions to its effect on the database: both engines
//! load, plan, apply.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use model::selector::Target;
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Uid};

use crate::engine::Transaction;
use crate::types::{Action, Change, Error, Precondition, Write, Written};

/// The largest object that is stored, in bytes. An object that an older version stored may be larger: it can be read, deleted and
/// made smaller.
pub const OBJECT_BYTES: usize = 3 << 20;

/// The most labels of an object: each is a row of the index that the commit writes while all other writers wait. An object that
/// an older version stored may have more. Selectable fields are not counted: a kind has few, and indexing a new one must not fail.
pub const OBJECT_LABELS: usize = 10_000;

/// Growth that an update may cause in an object that is over [`OBJECT_BYTES`] already: enough for the
/// deletion mark and the managed fields of the request that removes finalizers.
const OVERSIZE_GROWTH: usize = 1 << 10;

/// A head as the planner needs it.
#[derive(Clone, Debug)]
pub struct Head {
    /// The revision that wrote it.
    pub revision: Revision,
    /// The uid of this life of the name.
    pub uid: Uid,
    /// Its labels and fields.
    pub attributes: Attributes,
    /// The object; only if [`Wanted::value`] asks for it.
    pub value: Option<Bytes>,
    /// The bytes of its value and its attributes in the database.
    pub bytes: u64,
}

/// A head that has to be loaded before planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Its key.
    pub key: &'a ObjectKey,
    /// Whether the value is needed too: an update that changes nothing is found by comparing.
    pub value: bool,
}

/// The heads that a batch depends on: each key once, in key order.
pub fn wanted(batch: &[Transaction]) -> Vec<Wanted<'_>> {
    let mut keys: BTreeMap<&ObjectKey, bool> = BTreeMap::new();
    for write in batch.iter().flatten() {
        *keys.entry(write.key()).or_default() |= matches!(write, Write::Update { .. });
    }
    keys.into_iter().map(|(key, value)| Wanted { key, value }).collect()
}

/// The effect of a batch, for one database transaction.
#[derive(Debug)]
pub struct BatchPlan {
    /// One per transaction, in order.
    pub outcomes: Vec<Result<Vec<Written>, Error>>,
    /// To append to the log, with consecutive revisions.
    pub changes: Vec<Change>,
    /// Net effect of the batch on the heads, each key once, in key order.
    pub heads: Vec<HeadMove>,
    /// Versions that are no longer current, also those that were created and replaced within the batch.
    pub history: Vec<Superseded>,
    /// Bytes that become history: values and attributes of superseded versions, and of deletions.
    pub history_bytes: u64,
    /// Change of the number of objects, per resource and namespace, without zeros.
    pub counts: Vec<CountMove>,
    /// The clock after the batch; the clock before it if nothing changed.
    pub revision: Revision,
}

/// The net effect of a batch on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadMove {
    /// The key.
    pub key: ObjectKey,
    /// The revision of the new head, or none if it was deleted.
    pub revision: Option<Revision>,
    /// Whether there was a head before the batch.
    pub existed: bool,
    /// Index entries to write.
    pub added: Vec<Entry>,
    /// Index entries to delete.
    pub removed: Vec<Entry>,
}

/// One label or field of a head, as the index keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Label or field.
    pub target: Target,
    /// The label's key or the field's path.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A version that was the head and is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// The key.
    pub key: ObjectKey,
    /// The version.
    pub revision: Revision,
    /// The revision that replaced or deleted it.
    pub by: Revision,
}

/// Change of the number of objects in a namespace of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountMove {
    /// The resource.
    pub resource: Resource,
    /// The namespace; empty for cluster-scoped resources.
    pub namespace: String,
    /// Negative for a loss.
    pub delta: i64,
}

/// The letter by which the index tells labels from fields.
pub fn target_letter(target: Target) -> &'static str {
    match target {
        Target::Label => "l",
        Target::Field => "f",
    }
}

/// Decides a batch: later transactions see the effects of earlier ones, and one that fails leaves no trace.
///
/// `heads` holds the heads of all [`wanted`] keys that have one; `clock` is the newest committed revision.
pub fn plan(batch: Vec<Transaction>, heads: HashMap<ObjectKey, Head>, clock: Revision) -> BatchPlan {
    let mut ledger = Ledger {
        loaded: heads,
        touched: HashMap::new(),
        changes: Vec::new(),
        history: Vec::new(),
        history_bytes: 0,
        clock,
    };
    let outcomes = batch.into_iter().map(|writes| ledger.transact(writes)).collect();
    ledger.finish(outcomes)
}

/// The state of a batch so far.
struct Ledger {
    loaded: HashMap<ObjectKey, Head>,
    /// Heads as the transactions so far leave them; `None` where they deleted it.
    touched: HashMap<ObjectKey, Option<Head>>,
    changes: Vec<Change>,
    history: Vec<Superseded>,
    history_bytes: u64,
    clock: Revision,
}

/// Effect of one transaction so far; dropped if it fails.
struct Draft {
    touched: HashMap<ObjectKey, Option<Head>>,
    changes: Vec<Change>,
    history: Vec<Superseded>,
    history_bytes: u64,
    clock: Revision,
}

impl Ledger {
    fn transact(&mut self, writes: Transaction) -> Result<Vec<Written>, Error> {
        let mut draft = Draft {
            touched: HashMap::new(),
            changes: Vec::new(),
            history: Vec::new(),
            history_bytes: 0,
            clock: self.clock,
        };
        let mut written = Vec::with_capacity(writes.len());
        for write in writes {
            written.extend(self.step(&mut draft, write)?);
        }
        self.touched.extend(draft.touched);
        self.changes.append(&mut draft.changes);
        self.history.append(&mut draft.history);
        self.history_bytes += draft.history_bytes;
        self.clock = draft.clock;
        Ok(written)
    }

    fn step(&self, draft: &mut Draft, write: Write) -> Result<Option<Written>, Error> {
        let head = self.head(draft, write.key());
        Ok(match write {
            Write::Create { key, .. } if head.is_some() => return Err(Error::AlreadyExists { key }),
            Write::Create { key, uid, attributes, body } => {
                check_size(&key, None, &attributes, &body)?;
                Some(draft.append(Action::Create, key, uid, None, attributes, &body))
            }
            Write::Update { key, expect, attributes, body } => {
                let head = expected(&key, &expect, head)?.clone();
                if let Some(value) = unchanged(&head, &attributes, &body) {
                    return Ok(Some(Written { revision: head.revision, value }));
                }
                check_size(&key, Some(&head), &attributes, &body)?;
                Some(draft.append(Action::Update, key, head.uid.clone(), Some(head), attributes, &body))
            }
            Write::Delete { key, expect, attributes, body } => {
                let head = expected(&key, &expect, head)?.clone();
                Some(draft.append(Action::Delete, key, head.uid.clone(), Some(head), attributes, &body))
            }
            Write::Require { key, expect, selector } => {
                let head = expected(&key, &expect, head)?;
                if !selector.matches(&key, &head.attributes) {
                    return Err(conflict(&key, head));
                }
                None
            }
        })
    }

    fn head<'a>(&'a self, draft: &'a Draft, key: &ObjectKey) -> Option<&'a Head> {
        match draft.touched.get(key).or_else(|| self.touched.get(key)) {
            Some(touched) => touched.as_ref(),
            None => self.loaded.get(key),
        }
    }

    fn finish(self, outcomes: Vec<Result<Vec<Written>, Error>>) -> BatchPlan {
        let mut counts: BTreeMap<(Resource, String), i64> = BTreeMap::new();
        let mut heads = Vec::with_capacity(self.touched.len());
        for (key, after) in self.touched {
            let before = self.loaded.get(&key);
            if before.is_none() && after.is_none() {
                continue;
            }
            let delta = i64::from(after.is_some()) - i64::from(before.is_some());
            *counts.entry((key.resource.clone(), key.namespace.clone())).or_default() += delta;
            let none = Attributes::default();
            let old = before.map_or(&none, |head| &head.attributes);
            let new = after.as_ref().map_or(&none, |head| &head.attributes);
            heads.push(HeadMove {
                added: difference(new, old),
                removed: difference(old, new),
                revision: after.as_ref().map(|head| head.revision),
                existed: before.is_some(),
                key,
            });
        }
        // In key order the database touches neighbouring pages one after the other.
        heads.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let counts = counts
            .into_iter()
            .filter(|(_, delta)| *delta != 0)
            .map(|((resource, namespace), delta)| CountMove { resource, namespace, delta })
            .collect();
        BatchPlan {
            outcomes,
            changes: self.changes,
            heads,
            history: self.history,
            history_bytes: self.history_bytes,
            counts,
            revision: self.clock,
        }
    }
}

impl Draft {
    fn append(
        &mut self,
        action: Action,
        key: ObjectKey,
        uid: Uid,
        replaced: Option<Head>,
        attributes: Attributes,
        body: &Encoded,
    ) -> Written {
        let revision = self.clock.next();
        self.clock = revision;
        let value = body.at(revision);
        let previous = replaced.as_ref().map_or(Revision::ZERO, |head| head.revision);
        let bytes = stored_bytes(&value, &attributes);
        if let Some(head) = &replaced {
            self.history_bytes += head.bytes;
            self.history.push(Superseded { key: key.clone(), revision: previous, by: revision });
        }
        if action == Action::Delete {
            self.history_bytes += bytes;
        }
        let head = (action != Action::Delete).then(|| Head {
            revision,
            uid: uid.clone(),
            attributes: attributes.clone(),
            value: Some(value.clone()),
            bytes,
        });
        self.touched.insert(key.clone(), head);
        self.changes.push(Change {
            revision,
            key,
            uid,
            action,
            previous,
            attributes,
            previous_attributes: replaced.map(|head| head.attributes).unwrap_or_default(),
            value: value.clone(),
            version_at: body.version_at(),
        });
        Written { revision, value }
    }
}

/// The bytes of a version in the database, as the engines count them.
fn stored_bytes(value: &Bytes, attributes: &Attributes) -> u64 {
    (value.len() + attributes.to_bytes().len()) as u64
}

fn expected<'a>(key: &ObjectKey, expect: &Precondition, head: Option<&'a Head>) -> Result<&'a Head, Error> {
    let Some(head) = head else { return Err(Error::NotFound { key: key.clone() }) };
    let holds = expect.revision.is_none_or(|revision| revision == head.revision)
        && expect.uid.as_ref().is_none_or(|uid| *uid == head.uid);
    if holds { Ok(head) } else { Err(conflict(key, head)) }
}

fn conflict(key: &ObjectKey, head: &Head) -> Error {
    Error::Conflict { key: key.clone(), actual_revision: head.revision, actual_uid: head.uid.clone() }
}

/// Refuses an object that is over a limit, unless its head is over it too and this does not make it worse.
fn check_size(
    key: &ObjectKey,
    head: Option<&Head>,
    attributes: &Attributes,
    body: &Encoded,
) -> Result<(), Error> {
    let refused = |reason| Err(Error::TooLarge { key: key.clone(), reason });
    let value = head.and_then(|head| head.value.as_ref()).map_or(0, Bytes::len);
    let most = if value > OBJECT_BYTES { value + OVERSIZE_GROWTH } else { OBJECT_BYTES };
    if body.len() > most {
        return refused(format!(
            "the object would take {} bytes in storage, the limit is {OBJECT_BYTES}",
            body.len()
        ));
    }
    let labels = attributes.labels().len();
    if labels > head.map_or(0, |head| head.attributes.labels().len()).max(OBJECT_LABELS) {
        return refused(format!("the object has {labels} labels, the limit is {OBJECT_LABELS}"));
    }
    Ok(())
}

/// The head's value, if the update would write it again.
fn unchanged(head: &Head, attributes: &Attributes, body: &Encoded) -> Option<Bytes> {
    let value = head.value.as_ref()?;
    // Almost every real update already differs in length or attributes, and need not be encoded to compare.
    let digits = value.len().checked_sub(body.len())?;
    (digits == head.revision.to_string().len()
        && head.attributes == *attributes
        && body.at(head.revision) == *value)
        .then(|| value.clone())
}

/// The entries that an object with these labels and fields has in the index.
pub fn entries_of(attributes: &Attributes) -> Vec<Entry> {
    difference(attributes, &Attributes::default())
}

/// The entries of `a` that `b` lacks.
fn difference(a: &Attributes, b: &Attributes) -> Vec<Entry> {
    let entry =
        |target, key: &str, value: &str| Entry { target, key: key.to_owned(), value: value.to_owned() };
    let labels = a.labels().iter().filter(|(key, value)| b.label(key) != Some(value));
    let fields = a.fields().iter().filter(|(key, value)| b.field(key) != Some(value));
    labels
        .map(|(key, value)| entry(Target::Label, key, value))
        .chain(fields.map(|(key, value)| entry(Target::Field, key, value)))
        .collect()
}

#[cfg(test)]
mod tests;
