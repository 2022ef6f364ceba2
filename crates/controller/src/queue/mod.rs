//! The work queue: each key at most once, with one worker at a time, by priority; a key that failed comes back with exponential backoff.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::metrics::{Counts, Measured, Snapshot};

/// The backoff after a first failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// The longest backoff.
const LAST_DELAY: Duration = Duration::from_secs(60);
/// The keys of normal priority that are taken in a row while one of low priority waits; then the latter has its turn.
const STREAK_MAX: u32 = 8;

/// A name of work: an object, or whatever a controller reconciles as one.
pub trait Key: Clone + Eq + Hash + Debug + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + Debug + Send + Sync + 'static> Key for K {}

/// The order in which workers take keys. Keys of one priority are taken in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Changes: somebody may wait for them.
    Normal,
    /// Objects of a list, which at a start are many and mostly as they should be. They are never starved: see [`WorkQueue`].
    Low,
}

/// A queue of keys. Clones are the same queue.
///
/// A key is in it at most once, and a key that is added while a worker has it comes again afterwards. No key starves: one that fails waits
/// longer and longer and then joins the end of its priority, and a waiting key of low priority is taken after eight of normal priority. With
/// [`Controller::fair_by`](crate::Controller::fair_by), flows such as namespaces take turns within a priority.
pub struct WorkQueue<K>(Arc<Inner<K>>);

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<K> {
    state: Mutex<State<K>>,
    /// Wakes a worker.
    changed: Notify,
    counts: Counts,
}

/// The place of a ready key: workers take the first. Of one priority the keys of a lower round come first, and of one round the older ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    priority: Priority,
    round: u64,
    sequence: u64,
}

/// Computes the flow of a key.
type FlowFn<K> = Arc<dyn Fn(&K) -> String + Send + Sync>;
/// The keys of one priority that share their turns.
type Flow = (Priority, String);

/// The time of a delayed key; the number tells apart keys of the same time.
type Due = (Instant, u64);

struct State<K> {
    ready: BTreeMap<Place, K>,
    /// The keys that a worker has to take: the ready ones, and those that were added again while a worker has them.
    wanted: HashMap<K, Wanted>,
    running: HashMap<K, Running>,
    timers: BTreeMap<Due, K>,
    delayed: HashMap<K, Delayed>,
    failures: HashMap<K, u32>,
    sequence: u64,
    /// The flows that take turns; without it all keys are one flow.
    flow_of: Option<FlowFn<K>>,
    /// The round of the last key of each flow, while it is not over.
    rounds: HashMap<Flow, u64>,
    /// The round that is taken at present, by priority.
    present: BTreeMap<Priority, u64>,
    /// The keys of normal priority that were taken in a row while one of low priority waited.
    streak: u32,
}

#[derive(Clone, Copy)]
struct Wanted {
    place: Place,
    since: Instant,
}

#[derive(Clone, Copy)]
struct Running {
    priority: Priority,
    since: Instant,
}

#[derive(Clone, Copy)]
struct Delayed {
    due: Due,
    priority: Priority,
}

impl<K: Key> Default for WorkQueue<K> {
    fn default() -> Self {
        let state = State {
            ready: BTreeMap::new(),
            wanted: HashMap::new(),
            running: HashMap::new(),
            timers: BTreeMap::new(),
            delayed: HashMap::new(),
            failures: HashMap::new(),
            sequence: 0,
            flow_of: None,
            rounds: HashMap::new(),
            present: BTreeMap::new(),
            streak: 0,
        };
        Self(Arc::new(Inner { state: Mutex::new(state), changed: Notify::new(), counts: Counts::default() }))
    }
}

impl<K: Key> WorkQueue<K> {
    /// Lets flows take turns: of each flow one key, then the next of each. See [`Controller::fair_by`](crate::Controller::fair_by).
    pub(crate) fn fair_by(&self, flow_of: impl Fn(&K) -> String + Send + Sync + 'static) {
        self.state().flow_of = Some(Arc::new(flow_of));
    }

    /// Adds a key of normal priority.
    pub fn add(&self, key: K) {
        self.add_with_priority(key, Priority::Normal);
    }

    /// Adds a key. One that waits already keeps its place, or moves up to the higher priority.
    pub fn add_with_priority(&self, key: K, priority: Priority) {
        let mut state = self.state();
        if state.want(key, priority, Instant::now()) {
            self.0.counts.added();
            self.0.changed.notify_one();
        }
    }

    /// Adds a key of normal priority after a delay. Of several delays of a key the shortest counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.delay(key, delay, Priority::Normal);
    }

    /// The measurements of the queue.
    pub(crate) fn measured(&self) -> Arc<dyn Measured> {
        Arc::clone(&self.0) as Arc<dyn Measured>
    }

    /// The next key, for a worker that must call [`WorkQueue::done`] afterwards.
    pub(crate) async fn next(&self) -> K {
        loop {
            let changed = self.0.changed.notified();
            if let Some(key) = self.next_now() {
                return key;
            }
            let first = self.state().timers.keys().next().map(|(at, _)| *at);
            match first {
                None => changed.await,
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(at) => {}
                },
            }
        }
    }

    /// As [`WorkQueue::next`], if there is one now.
    pub(crate) fn next_now(&self) -> Option<K> {
        let (mut state, now) = (self.state(), Instant::now());
        for _ in 0..state.ring(now) {
            self.0.counts.added();
        }
        let (key, since) = state.take(now)?;
        self.0.counts.taken(now - since);
        // The bell keeps one ring only: another worker may sleep although there is more.
        if !state.ready.is_empty() {
            self.0.changed.notify_one();
        }
        Some(key)
    }

    /// A worker has finished with a key.
    pub(crate) fn done(&self, key: &K) {
        let mut state = self.state();
        if let Some(Running { since, .. }) = state.running.remove(key) {
            self.0.counts.worked(since.elapsed());
        }
        if let Some(Wanted { place, .. }) = state.wanted.get(key).copied() {
            state.ready.insert(place, key.clone());
            self.0.changed.notify_one();
        }
    }

    /// Adds the key that a worker has again after a delay, with the priority that it had.
    pub(crate) fn requeue_after(&self, key: K, delay: Duration) {
        let priority = self.state().running.get(&key).map_or(Priority::Normal, |running| running.priority);
        self.delay(key, delay, priority);
    }

    /// Adds the key that a worker has again after a backoff. Returns how often it has failed in a row.
    pub(crate) fn retry(&self, key: K) -> u32 {
        self.0.counts.retried();
        let failures = {
            let mut state = self.state();
            let failures = state.failures.entry(key.clone()).or_default();
            *failures = failures.saturating_add(1);
            *failures
        };
        self.requeue_after(key, backoff(failures));
        failures
    }

    /// Ends the backoff of a key.
    pub(crate) fn forget(&self, key: &K) {
        self.state().failures.remove(key);
    }

    fn delay(&self, key: K, delay: Duration, priority: Priority) {
        if delay.is_zero() {
            return self.add_with_priority(key, priority);
        }
        let mut state = self.state();
        state.sequence += 1;
        let due = (Instant::now() + delay, state.sequence);
        let old = state.delayed.get(&key).copied();
        let priority = old.map_or(priority, |old| old.priority.min(priority));
        let due = old.map_or(due, |old| old.due.min(due));
        if let Some(old) = old {
            state.timers.remove(&old.due);
        }
        state.delayed.insert(key.clone(), Delayed { due, priority });
        state.timers.insert(due, key);
        self.0.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.0.state()
    }
}

/// The wait after so many failures in a row.
fn backoff(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(1 << (failures.max(1) - 1).min(16)).min(LAST_DELAY)
}

impl<K> Inner<K> {
    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> Measured for Inner<K> {
    fn snapshot(&self) -> Snapshot<'_> {
        let state = self.state();
        let running = state.running.values().map(|running| running.since.elapsed());
        let (sum, longest) = running
            .fold(Default::default(), |(sum, longest): (Duration, Duration), time| {
                (sum + time, longest.max(time))
            });
        Snapshot { depth: state.ready.len(), unfinished: sum, longest_running: longest, counts: &self.counts }
    }
}

impl<K: Key> State<K> {
    /// Notes that a key has to be taken. True if it had not.
    fn want(&mut self, key: K, priority: Priority, now: Instant) -> bool {
        let is_ready = !self.running.contains_key(&key);
        let round = if self.wanted.contains_key(&key) { 0 } else { self.next_round(&key, priority) };
        match self.wanted.entry(key) {
            Entry::Vacant(entry) => {
                self.sequence += 1;
                let place = Place { priority, round, sequence: self.sequence };
                if is_ready {
                    self.ready.insert(place, entry.key().clone());
                }
                entry.insert(Wanted { place, since: now });
                true
            }
            Entry::Occupied(mut entry) => {
                let old = entry.get().place;
                if priority < old.priority {
                    // It moves up with its age, into the round of now.
                    let round = self.present.get(&priority).copied().unwrap_or_default();
                    let place = Place { priority, round, ..old };
                    entry.get_mut().place = place;
                    if let Some(key) = self.ready.remove(&old) {
                        self.ready.insert(place, key);
                    }
                }
                false
            }
        }
    }

    /// The round of a new key: behind the last key of its flow, and not before the present round.
    fn next_round(&mut self, key: &K, priority: Priority) -> u64 {
        let Some(flow_of) = &self.flow_of else { return 0 };
        let present = self.present.get(&priority).copied().unwrap_or_default();
        let last = self.rounds.entry((priority, flow_of(key))).or_insert(0);
        *last = (*last + 1).max(present);
        *last
    }

    /// Notes that a key of a round was taken, and forgets flows without a key in a later one.
    fn begin_round(&mut self, place: Place) {
        if self.flow_of.is_none() {
            return;
        }
        let present = self.present.entry(place.priority).or_default();
        if place.round > *present {
            *present = place.round;
            self.rounds.retain(|(priority, _), last| *priority != place.priority || *last >= place.round);
        }
    }

    /// Makes ready what is due by now. Returns how many keys that adds.
    fn ring(&mut self, now: Instant) -> usize {
        let mut added = 0;
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            let priority = self.delayed.remove(&key).map_or(Priority::Normal, |delayed| delayed.priority);
            added += usize::from(self.want(key, priority, now));
        }
        added
    }

    fn take(&mut self, now: Instant) -> Option<(K, Instant)> {
        let low = Place { priority: Priority::Low, round: 0, sequence: 0 };
        let first_low = self.ready.range(low..).next().map(|(place, _)| *place);
        let first = self.ready.keys().next().copied()?;
        let place = first_low.filter(|_| self.streak >= STREAK_MAX).unwrap_or(first);
        let passes_by = place.priority == Priority::Normal && first_low.is_some();
        self.streak = if passes_by { self.streak + 1 } else { 0 };
        let key = self.ready.remove(&place)?;
        self.begin_round(place);
        let since = self.wanted.remove(&key).map_or(now, |wanted| wanted.since);
        self.running.insert(key.clone(), Running { priority: place.priority, since: now });
        Some((key, since))
    }
}

#[cfg(test)]
mod tests;
