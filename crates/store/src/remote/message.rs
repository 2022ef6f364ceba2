//! Messages: the calls of an engine, each as a value.

use std::time::Duration;

use bytes::Bytes;
use model::{ObjectKey, Resource, Revision};

use super::wire::{Wire, variants};
use crate::engine::{Bound, Transaction};
use crate::types::ListQuery;

/// A call of [`crate::Engine`]. Its answer is the method's result; `None` if the clock was advanced and the
/// client does not know of it: then nothing was committed.
#[derive(Clone, Debug)]
pub enum Request {
    Clock,
    Get {
        key: ObjectKey,
        at: Option<Revision>,
    },
    List(ListQuery),
    Commit(Vec<Transaction>),
    Changes {
        of: Option<Resource>,
        after: Revision,
        bound: Bound,
    },
    OlderThan(Duration),
    Compact {
        through: Revision,
        limit: u64,
    },
    Advance(Revision),
    HistoryBytes,
    /// The history of the database, with the change at a revision. Answered by a [`crate::history::decide::ObservedHistory`].
    History(Option<Revision>),
    /// An advance of the clock, if the database is still at this incarnation. Answered by the history then, or by `None`.
    AdvanceFrom {
        incarnation: String,
        to: Revision,
    },
}

variants! {
    Request {
        0 => Clock,
        1 => Get { key, at },
        2 => List(query),
        3 => Commit(batch),
        4 => Changes { of, after, bound },
        5 => OlderThan(age),
        6 => Compact { through, limit },
        7 => Advance(to),
        8 => HistoryBytes,
        9 => History(record),
        10 => AdvanceFrom { incarnation, to },
    }
}

/// Reads a whole frame as one value.
pub fn read<T: Wire>(mut content: Bytes) -> Option<T> {
    let value = T::pull(&mut content)?;
    content.is_empty().then_some(value)
}
