//! The open connections. Beyond the limit, the longest idle unauthenticated one is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All connections of a listener.
pub(super) struct Connections {
    room: Arc<Semaphore>,
    unauthenticated: Mutex<UnauthenticatedConnections>,
}

/// The connections without an authenticated request, in order of eviction.
#[derive(Default)]
struct UnauthenticatedConnections {
    /// Idle ones first, then by the time of the last change.
    order: BTreeMap<EvictionKey, Arc<Notify>>,
    changes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionKey {
    is_busy: bool,
    since: u64,
}

impl UnauthenticatedConnections {
    fn insert(&mut self, is_busy: bool, close: Arc<Notify>) -> EvictionKey {
        self.changes += 1;
        let eviction_key = EvictionKey { is_busy, since: self.changes };
        self.order.insert(eviction_key, close);
        eviction_key
    }
}

impl Connections {
    /// With a limit of connections.
    pub fn new(limit: usize) -> Arc<Self> {
        let room = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { room, unauthenticated: Mutex::default() })
    }

    /// A slot for an accepted connection. Without a free one, evicts the longest idle unauthenticated connection.
    pub async fn enter(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let permit = match self.room.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.close_unauthenticated();
                self.room.clone().acquire_owned().await.ok()?
            }
        };
        let close = Arc::new(Notify::new());
        let eviction_key = self.unauthenticated().insert(false, Arc::clone(&close));
        let slot = ConnectionSlot {
            connections: Arc::clone(self),
            eviction_key: Mutex::new(Some((eviction_key, 0))),
            close,
            _permit: permit,
        };
        Some(slot)
    }

    /// Evicts a connection: idle ones before busy ones, the longest idle first.
    pub fn close_unauthenticated(&self) {
        let first = self.unauthenticated().order.pop_first();
        if let Some((_, close)) = first {
            tracing::debug!("connection limit reached; closing the longest idle unauthenticated connection");
            close.notify_one();
        }
    }

    fn unauthenticated(&self) -> MutexGuard<'_, UnauthenticatedConnections> {
        self.unauthenticated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a connection.
pub(super) struct ConnectionSlot {
    connections: Arc<Connections>,
    /// Its eviction key and its number of open requests; `None` once it is authenticated.
    eviction_key: Mutex<Option<(EvictionKey, usize)>>,
    close: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlot {
    /// Returns when the connection is evicted.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Exempts the connection from eviction after an authenticated request.
    pub fn authenticate(&self) {
        if let Some((eviction_key, _)) = self.eviction_key().take() {
            self.connections.unauthenticated().order.remove(&eviction_key);
        }
    }

    /// Records the start of a request.
    pub fn begin(&self) {
        self.count(|open| open + 1);
    }

    /// Records the end of a request.
    pub fn end(&self) {
        self.count(|open| open.saturating_sub(1));
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut held = self.eviction_key();
        let Some((eviction_key, open)) = held.as_mut() else { return };
        *open = change(*open);
        let mut unauthenticated = self.connections.unauthenticated();
        // A missing key means that the connection is being closed.
        if let Some(close) = unauthenticated.order.remove(eviction_key) {
            *eviction_key = unauthenticated.insert(*open > 0, close);
        }
    }

    fn eviction_key(&self) -> MutexGuard<'_, Option<(EvictionKey, usize)>> {
        self.eviction_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.authenticate();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// The indexes of the evicted connections.
    fn closed(entries: &[&ConnectionSlot]) -> Vec<usize> {
        let is_closed = |slot: &&ConnectionSlot| slot.closed().now_or_never().is_some();
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
        // `first` is authenticated, `second` is busy, `third` was busy after `fourth` connected.
        for expected in [vec![3], vec![2], vec![1], vec![]] {
            connections.close_unauthenticated();
            assert_eq!(closed(&[first, second, third, fourth]), expected);
        }
    }

    #[tokio::test]
    async fn a_new_connection_evicts_an_unauthenticated_one_or_waits() {
        let connections = Connections::new(1);
        let known = connections.enter().await.unwrap();
        known.authenticate();
        assert!(connections.enter().now_or_never().is_none(), "no connection is closed for it");
        drop(known);
        let stranger = connections.enter().await.unwrap();
        let mut newcomer = std::pin::pin!(connections.enter());
        assert!(newcomer.as_mut().now_or_never().is_none());
        assert_eq!(closed(&[&stranger]), [0]);
        drop(stranger);
        assert!(newcomer.await.is_some());
    }
}
