//! One resource in the hub: its recent changes and its watches.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::{Resource, Revision};
use tokio::sync::Notify;

use super::held;
use super::quiet::Quiet;
use crate::event::{SharedChange, WatchScope};

/// The recent changes and the watches of a resource.
pub(crate) struct Topic {
    resource: Resource,
    state: Mutex<State>,
}

struct State {
    /// All changes of the resource after this revision are in `ring`.
    floor: Revision,
    ring: VecDeque<Arc<SharedChange>>,
    /// The watches that have nothing to read.
    quiet: Quiet,
    next_id: u64,
    closed: bool,
}

/// A watch as the hub knows it.
pub(crate) struct Subscription {
    pub id: u64,
    pub scope: WatchScope,
    /// The first change that the watch has to read; 0 while it is quiet. Only accessed under the lock of the
    /// topic.
    first: AtomicU64,
    /// Only changes after this are of interest.
    from: Revision,
    bell: Notify,
}

impl Subscription {
    /// Wakes the watch, or keeps it from falling asleep.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// Waits for the bell.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Records a change that the watch may have to read. Returns whether it is no longer quiet.
    pub fn touch(&self, change: &SharedChange) -> bool {
        let touched = change.revision > self.from && self.scope.kind(change).is_some();
        if touched {
            self.set_first(Some(change.revision));
        }
        touched
    }

    pub(super) fn first(&self) -> Option<Revision> {
        Some(Revision(self.first.load(Ordering::Relaxed))).filter(|first| *first > Revision::ZERO)
    }

    fn set_first(&self, first: Option<Revision>) {
        self.first.store(first.unwrap_or(Revision::ZERO).0, Ordering::Relaxed);
    }
}

/// Result of a watch's read from memory.
pub(crate) enum RingRead {
    /// Nothing: the watch is quiet and will be rung.
    Nothing,
    /// Changes after its cursor, not yet filtered.
    Recent(Vec<Arc<SharedChange>>),
    /// The changes that follow this revision are no longer in memory.
    Behind(Revision),
    /// The store is closed.
    Closed,
}

impl Topic {
    /// A topic with nothing in memory at or before `floor`.
    pub fn new(resource: &Resource, floor: Revision, closed: bool) -> Self {
        let state = State { floor, ring: VecDeque::new(), quiet: Quiet::default(), next_id: 0, closed };
        Self { resource: resource.clone(), state: Mutex::new(state) }
    }

    /// The resource.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Appends the next changes; adds the watches that they touch to `rung`.
    pub fn publish(&self, changes: Vec<Arc<SharedChange>>, rung: &mut Vec<Arc<Subscription>>) {
        let mut state = held(&self.state);
        for change in changes {
            state.quiet.take_touched(&change, rung);
            state.ring.push_back(change);
        }
    }

    /// Evicts the oldest change.
    pub fn evict(&self) {
        let mut state = held(&self.state);
        if let Some(change) = state.ring.pop_front() {
            state.floor = change.revision;
            change.leave();
        }
    }

    /// Evicts everything up to `to`. Quiet watches, which have seen everything up to `from`, have to look
    /// again.
    pub fn reset(&self, from: Revision, to: Revision, rung: &mut Vec<Arc<Subscription>>) {
        let mut state = held(&self.state);
        state.ring.drain(..).for_each(|change| change.leave());
        state.floor = to;
        for subscription in state.quiet.take_all() {
            subscription.set_first(Some(from.max(subscription.from).next()));
            rung.push(subscription);
        }
    }

    /// Ends the watches.
    pub fn close(&self, rung: &mut Vec<Arc<Subscription>>) {
        let mut state = held(&self.state);
        state.closed = true;
        rung.extend(state.quiet.take_all());
    }

    /// A new watch of everything after `from`.
    pub fn subscribe(&self, scope: WatchScope, from: Revision) -> Arc<Subscription> {
        let mut state = held(&self.state);
        state.next_id += 1;
        let subscription = Arc::new(Subscription {
            id: state.next_id,
            scope,
            first: AtomicU64::new(from.next().0),
            from,
            bell: Notify::new(),
        });
        state.rest_if_done(&subscription, from);
        subscription
    }

    /// Removes a watch.
    pub fn unsubscribe(&self, subscription: &Arc<Subscription>) {
        held(&self.state).quiet.remove(subscription);
    }

    /// The changes that follow the cursor, at most `limit`. A watch that has read everything becomes quiet.
    pub fn look(&self, subscription: &Arc<Subscription>, cursor: Revision, limit: usize) -> RingRead {
        let mut state = held(&self.state);
        if state.closed {
            return RingRead::Closed;
        }
        let Some(first) = subscription.first() else { return RingRead::Nothing };
        let after = cursor.max(Revision(first.0 - 1));
        if after < state.floor {
            return RingRead::Behind(after);
        }
        if state.rest_if_done(subscription, after) {
            return RingRead::Nothing;
        }
        let start = state.after(after);
        RingRead::Recent(state.ring.range(start..).take(limit).cloned().collect())
    }

    /// The revision up to which the watch has seen every change that concerns it.
    pub fn position(&self, subscription: &Subscription, cursor: Revision, head: &AtomicU64) -> Revision {
        // The head is read under the lock: a change up to the head that touched the watch has already ended
        // its quiet state.
        let _state = held(&self.state);
        match subscription.first() {
            None => cursor.max(Revision(head.load(Ordering::Acquire))),
            Some(first) => cursor.max(Revision(first.0 - 1)),
        }
    }
}

impl State {
    /// Index of the first change after a revision.
    fn after(&self, revision: Revision) -> usize {
        self.ring.partition_point(|change| change.revision <= revision)
    }

    /// Makes a watch quiet if the topic has no change after `after`.
    fn rest_if_done(&mut self, subscription: &Arc<Subscription>, after: Revision) -> bool {
        let done = after >= self.floor && self.after(after) == self.ring.len();
        if done && !self.closed {
            subscription.set_first(None);
            self.quiet.insert(subscription);
        }
        done
    }
}
