//! The open connections, and which of them goes when there are too many: the longest idle one that nobody has authenticated on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All connections of a listener.
pub(super) struct Connections {
    room: Arc<Semaphore>,
    strangers: Mutex<Strangers>,
}

/// The connections without an authenticated request, in the order in which they go.
#[derive(Default)]
struct Strangers {
    /// By whether they are busy, then by when that changed: the first goes first.
    order: BTreeMap<Place, Arc<Notify>>,
    changes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_busy: bool,
    since: u64,
}

impl Strangers {
    fn insert(&mut self, is_busy: bool, close: Arc<Notify>) -> Place {
        self.changes += 1;
        let place = Place { is_busy, since: self.changes };
        self.order.insert(place, close);
        place
    }
}

impl Connections {
    /// Room for so many.
    pub fn new(limit: usize) -> Arc<Self> {
        let room = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { room, strangers: Mutex::default() })
    }

    /// A place for a connection that was accepted. Where there is none, the longest idle stranger is closed for it.
    pub async fn enter(self: &Arc<Self>) -> Option<Entry> {
        let permit = match self.room.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.close_stranger();
                self.room.clone().acquire_owned().await.ok()?
            }
        };
        let close = Arc::new(Notify::new());
        let place = self.strangers().insert(false, Arc::clone(&close));
        let entry = Entry {
            connections: Arc::clone(self),
            place: Mutex::new(Some((place, 0))),
            close,
            _permit: permit,
        };
        Some(entry)
    }

    /// Closes the connection that is missed least: an idle stranger before a busy one, and who is idle for longest first.
    pub fn close_stranger(&self) {
        let first = self.strangers().order.pop_first();
        if let Some((_, close)) = first {
            tracing::debug!("too many connections; closing the longest idle unauthenticated one");
            close.notify_one();
        }
    }

    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection.
pub(super) struct Entry {
    connections: Arc<Connections>,
    /// Its place among the strangers and its open requests; nothing once somebody has authenticated.
    place: Mutex<Option<(Place, usize)>>,
    close: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

impl Entry {
    /// Returns when the connection has to go.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Somebody authenticated on it: it stays.
    pub fn authenticate(&self) {
        if let Some((place, _)) = self.place().take() {
            self.connections.strangers().order.remove(&place);
        }
    }

    /// A request begins.
    pub fn begin(&self) {
        self.count(|open| open + 1);
    }

    /// A request ends.
    pub fn end(&self) {
        self.count(|open| open.saturating_sub(1));
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut held = self.place();
        let Some((place, open)) = held.as_mut() else { return };
        *open = change(*open);
        let mut strangers = self.connections.strangers();
        // One that is not there any more is about to be closed.
        if let Some(close) = strangers.order.remove(place) {
            *place = strangers.insert(*open > 0, close);
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<(Place, usize)>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.authenticate();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// Which of these connections have to go, by their place in the list.
    fn closed(entries: &[&Entry]) -> Vec<usize> {
        let is_closed = |entry: &&Entry| entry.closed().now_or_never().is_some();
        (0..entries.len()).filter(|i| is_closed(&entries[*i])).collect()
    }

    #[tokio::test]
    async fn the_longest_idle_unauthenticated_connection_goes_first_and_busy_ones_last() {
        let connections = Connections::new(4);
        let mut entries = Vec::new();
        for _ in 0..4 {
            entries.push(connections.enter().await.unwrap());
        }
        let [first, second, third, fourth] = &entries[..] else { unreachable!("there are four") };
        first.authenticate();
        second.begin();
        third.begin();
        third.end();
        // `first` is known, `second` is busy, `third` was busy after `fourth` came.
        for expected in [vec![3], vec![2], vec![1], vec![]] {
            connections.close_stranger();
            assert_eq!(closed(&[first, second, third, fourth]), expected);
        }
    }

    #[tokio::test]
    async fn a_newcomer_takes_the_place_of_a_stranger_and_waits_where_all_are_known() {
        let connections = Connections::new(1);
        let known = connections.enter().await.unwrap();
        known.authenticate();
        assert!(connections.enter().now_or_never().is_none(), "nobody is closed for it");
        drop(known);
        let stranger = connections.enter().await.unwrap();
        let mut newcomer = std::pin::pin!(connections.enter());
        assert!(newcomer.as_mut().now_or_never().is_none());
        assert_eq!(closed(&[&stranger]), [0]);
        drop(stranger);
        assert!(newcomer.await.is_some());
    }
}
