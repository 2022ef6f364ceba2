//! The keys that wait for a worker: each at most once, some not before their time, none in two workers at once.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::metrics::Counts;

/// The wait after a first failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// The longest wait after failures.
const LAST_DELAY: Duration = Duration::from_secs(60);

/// What names the work: an object, or whatever a controller decides about as one.
pub trait Key: Clone + Eq + Hash + Debug + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + Debug + Send + Sync + 'static> Key for K {}

/// A queue of keys. Clones are the same queue.
pub struct Queue<K>(Arc<Inner<K>>);

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<K> {
    state: Mutex<State<K>>,
    bell: Notify,
    counts: Arc<Counts>,
}

/// When something is due; the number tells apart what is due at the same time.
type Due = (Instant, u64);

struct State<K> {
    ready: VecDeque<K>,
    /// Keys that are to be taken up: those that are ready, and those that came again while a worker had them.
    wanted: HashSet<K>,
    running: HashSet<K>,
    timers: BTreeMap<Due, K>,
    due: HashMap<K, Due>,
    failures: HashMap<K, u32>,
    count: u64,
}

impl<K: Key> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            ready: VecDeque::new(),
            wanted: HashSet::new(),
            running: HashSet::new(),
            timers: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            count: 0,
        };
        Self(Arc::new(Inner { state: Mutex::new(state), bell: Notify::new(), counts: Arc::default() }))
    }
}

impl<K: Key> Queue<K> {
    /// Asks for a look at a key, as soon as a worker is free.
    pub fn add(&self, key: K) {
        let mut state = self.state();
        if state.want(key) {
            self.0.counts.added(state.ready.len());
            self.0.bell.notify_one();
        }
    }

    /// Asks for a look at a key after a while, if nothing asks for an earlier one.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let mut state = self.state();
        state.count += 1;
        let due = (Instant::now() + delay, state.count);
        if state.due.get(&key).is_some_and(|known| *known <= due) {
            return;
        }
        if let Some(later) = state.due.insert(key.clone(), due) {
            state.timers.remove(&later);
        }
        state.timers.insert(due, key);
        self.0.bell.notify_one();
    }

    /// What has been counted of it.
    pub(crate) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.0.counts)
    }

    /// The next key, for a worker that must say when it is [`Queue::done`].
    pub(crate) async fn next(&self) -> K {
        loop {
            let rung = self.0.bell.notified();
            if let Some(key) = self.next_now() {
                return key;
            }
            let first = self.state().timers.keys().next().map(|(at, _)| *at);
            match first {
                None => rung.await,
                Some(at) => tokio::select! {
                    () = rung => {}
                    () = sleep_until(at) => {}
                },
            }
        }
    }

    /// As [`Queue::next`], if there is one now.
    pub(crate) fn next_now(&self) -> Option<K> {
        let mut state = self.state();
        state.ring(Instant::now());
        let key = state.take()?;
        self.0.counts.waiting(state.ready.len());
        // Others may sleep although there is more: the bell keeps one ring only.
        if !state.ready.is_empty() {
            self.0.bell.notify_one();
        }
        Some(key)
    }

    /// A worker has finished with a key.
    pub(crate) fn done(&self, key: &K) {
        let mut state = self.state();
        state.running.remove(key);
        if state.wanted.contains(key) {
            state.ready.push_back(key.clone());
            self.0.bell.notify_one();
        }
    }

    /// Asks for another look after a failure, the later the more often it failed. How often that is by now.
    pub(crate) fn retry(&self, key: K) -> u32 {
        self.0.counts.retried();
        let failures = {
            let mut state = self.state();
            let failures = state.failures.entry(key.clone()).or_default();
            *failures = failures.saturating_add(1);
            *failures
        };
        self.add_after(key, FIRST_DELAY.saturating_mul(1 << (failures - 1).min(16)).min(LAST_DELAY));
        failures
    }

    /// The failures of a key are history.
    pub(crate) fn forget(&self, key: &K) {
        self.state().failures.remove(key);
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> State<K> {
    /// True if a worker has something to do that it had not before.
    fn want(&mut self, key: K) -> bool {
        if !self.wanted.insert(key.clone()) || self.running.contains(&key) {
            return false;
        }
        self.ready.push_back(key);
        true
    }

    /// Makes ready what is due by now.
    fn ring(&mut self, now: Instant) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.want(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.wanted.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn now<K: Key>(queue: &Queue<K>) -> Option<K> {
        queue.next().now_or_never()
    }

    #[tokio::test]
    async fn a_key_that_is_asked_for_twice_is_looked_at_once() {
        let queue = Queue::default();
        for key in ["a", "b", "a"] {
            queue.add(key);
        }
        assert_eq!([now(&queue), now(&queue), now(&queue)], [Some("a"), Some("b"), None]);
    }

    #[tokio::test]
    async fn a_key_is_never_in_two_workers_and_comes_again_if_it_was_asked_for_meanwhile() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(now(&queue), Some("a"));
        queue.add("a");
        assert_eq!(now(&queue), None);
        queue.done(&"a");
        assert_eq!(now(&queue), Some("a"));
        queue.done(&"a");
        assert_eq!(now(&queue), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_of_two_times_counts() {
        let queue = Queue::default();
        let begin = Instant::now();
        queue.add_after("a", Duration::from_secs(9));
        queue.add_after("a", Duration::from_secs(3));
        queue.add_after("a", Duration::from_secs(6));
        assert_eq!(queue.next().await, "a");
        assert_eq!(begin.elapsed().as_secs(), 3);
        queue.done(&"a");
        assert!(tokio::time::timeout(Duration::from_secs(60), queue.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_and_longer_until_they_are_forgotten() {
        let queue = Queue::default();
        let mut waits = Vec::new();
        for _ in 0..16 {
            let begin = Instant::now();
            queue.retry("a");
            queue.next().await;
            queue.done(&"a");
            waits.push(begin.elapsed().as_millis());
        }
        assert_eq!(waits[..4], [5, 10, 20, 40]);
        assert_eq!(waits[14..], [60_000, 60_000]);
        queue.forget(&"a");
        assert_eq!(queue.retry("a"), 1);
    }

    #[tokio::test]
    async fn as_many_workers_wake_as_there_are_keys() {
        let queue = Queue::<u32>::default();
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let queue = queue.clone();
            workers.spawn(async move { queue.next().await });
        }
        tokio::task::yield_now().await;
        (0..3).for_each(|key| queue.add(key));
        workers.join_all().await;
    }
}
