//! The history that this server has seen of a shared database, and the sessions that are known to lead to it.
//!
//! A PostgreSQL that was promoted from an asynchronous replica, or a database that was restored from a copy,
//! may have lost commits that clients saw. Every new session is checked before it is used, see [`decide`].
//! All sessions from before the loss are dropped, because they may lead to the former primary.

pub mod decide;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::Revision;

use self::decide::{Known, ObservedHistory, Record};
use crate::types::{Change, Error};

/// Number of a check. A session that was checked before the last loss is not used any more.
pub type Generation = u64;

/// The history that this server has seen of its database.
pub struct History {
    /// [`Known::seen`], apart from the rest because every read moves it.
    seen: AtomicU64,
    /// Number of losses found.
    epoch: AtomicU64,
    generation: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` until the first session.
    known: Option<Known>,
    /// Records up to here belong to a history that was lost.
    floor: Revision,
}

/// State of [`History`] at the start of a check.
pub struct Moment {
    pub known: Option<Known>,
    pub generation: Generation,
}

impl History {
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { seen: zero(), epoch: zero(), generation: zero(), state: Mutex::default() }
    }

    /// Number of losses found.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Sessions of this generation may be used.
    pub fn generation(&self) -> Generation {
        self.generation.load(Ordering::Acquire)
    }

    /// The greatest revision that a client of this server may have got.
    pub fn seen(&self) -> Revision {
        Revision(self.seen.load(Ordering::Relaxed))
    }

    /// Records that a client is about to get this revision.
    pub fn saw(&self, revision: Revision) {
        self.seen.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// Keeps the last of these changes, to find it again after a reconnect.
    pub fn remember(&self, changes: &[Change]) {
        let Some(last) = changes.last() else { return };
        let mut state = self.state();
        let State { known: Some(known), floor } = &mut *state else { return };
        let newest = known.record.as_ref().map_or(*floor, |record| record.revision);
        if last.revision > newest {
            let Change { revision, uid, value, .. } = last;
            // A copy: the value may be a piece of a buffer that holds all changes.
            let value = Bytes::copy_from_slice(value);
            known.record = Some(Record { revision: *revision, uid: uid.clone(), value });
        }
    }

    /// The known history, taken before a session is checked.
    pub fn now(&self) -> Moment {
        let state = self.state();
        let mut known = state.known.clone();
        if let Some(known) = &mut known {
            known.seen = self.seen();
        }
        Moment { known, generation: self.generation() }
    }

    /// Compares a later read of a session with the history known before it. On a mismatch all sessions have
    /// to be checked again.
    pub fn compare(
        &self,
        generation: Generation,
        seen: Revision,
        clock: Revision,
        incarnation: &str,
    ) -> Result<(), Error> {
        let known = self.state().known.as_ref().is_none_or(|known| known.incarnation == incarnation);
        if known && clock >= seen && generation == self.generation() {
            return Ok(());
        }
        self.doubt(generation);
        Err(doubtful())
    }

    /// Records that the history continues. Returns whether that still holds: another session may have found a
    /// loss meanwhile.
    pub fn goes_on(&self, since: &Moment, found: &ObservedHistory) -> bool {
        let mut state = self.state();
        if self.generation() != since.generation {
            return false;
        }
        let record = state.known.take().and_then(|known| known.record);
        state.known = Some(known(found, record));
        self.saw(found.clock.current);
        true
    }

    /// Records that the history was lost and the clock advanced: all sessions are checked again, and all
    /// watches end. Returns false if another session reported it first.
    pub fn was_lost(&self, since: &Moment, found: &ObservedHistory) -> bool {
        let mut state = self.state();
        if self.generation() != since.generation {
            return false;
        }
        state.known = Some(known(found, None));
        state.floor = found.clock.current;
        self.saw(found.clock.current);
        self.generation.fetch_add(1, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::Release);
        true
    }

    /// Records a mismatch found by a session of a generation: all sessions have to be checked before they are
    /// used.
    pub fn doubt(&self, generation: Generation) {
        let _state = self.state();
        if self.generation() == generation {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// A panic elsewhere leaves the state whole: it is changed in single steps.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Error for callers that find a database other than the one that was checked.
pub fn doubtful() -> Error {
    Error::Unavailable { reason: "the history of the database changed and is being checked again".to_owned() }
}

fn known(found: &ObservedHistory, record: Option<Record>) -> Known {
    let ObservedHistory { identity, incarnation, clock, .. } = found;
    Known { identity: *identity, incarnation: incarnation.clone(), seen: clock.current, record }
}
