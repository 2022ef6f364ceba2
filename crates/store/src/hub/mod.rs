//! The hub between changes and watches: recent changes in memory, once for all watches, and a doorbell for
//! each watch.
//!
//! Changes come in revision order and without a gap. A watch that no change touches is never woken, and its
//! position moves with the hub's head; a watch that is touched is rung once, and reads on from its cursor,
//! from memory or from the log.

mod bells;
mod publish;
mod quiet;
mod topic;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use model::{Resource, Revision};
use tokio::sync::watch as signal;

use self::bells::Bells;
pub(crate) use self::publish::{Outlet, publisher};
use self::topic::{Subscription, Topic};
pub use self::watch::Watch;
use crate::event::{RingMemory, SharedChange, WatchScope};
use crate::metrics::Metrics;

/// Memory limits of the hub.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLimits {
    pub events: usize,
    pub bytes: usize,
}

/// Recent changes of all resources, and the watches that wait for more.
pub(crate) struct Hub {
    topics: RwLock<Topics>,
    /// All changes up to here are in their topics.
    head: AtomicU64,
    /// The topics of the changes in memory, oldest first.
    order: Mutex<VecDeque<Arc<Topic>>>,
    memory: Arc<RingMemory>,
    limits: RingLimits,
    metrics: Metrics,
    /// The engine's epoch that the watches belong to.
    epoch: signal::Sender<u64>,
}

struct Topics {
    by_resource: HashMap<Resource, Arc<Topic>>,
    /// Nothing at or before this revision is in memory.
    base: Revision,
    closed: bool,
}

/// A panic elsewhere leaves these states whole: each is changed in single steps.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// A hub without changes up to `head`, in an epoch of the engine.
    pub fn new(head: Revision, epoch: u64, limits: RingLimits, metrics: Metrics) -> Self {
        Self {
            topics: RwLock::new(Topics { by_resource: HashMap::new(), base: head, closed: false }),
            head: AtomicU64::new(head.0),
            order: Mutex::new(VecDeque::new()),
            memory: Arc::new(RingMemory::new(limits.bytes)),
            limits,
            metrics,
            epoch: signal::Sender::new(epoch),
        }
    }

    /// The engine's epoch that the watches belong to.
    pub fn epoch(&self) -> u64 {
        *self.epoch.borrow()
    }

    /// Waits until the watches of earlier epochs have ended.
    pub async fn reaches(&self, epoch: u64) {
        // The sender is in the hub itself.
        let _ = self.epoch.subscribe().wait_for(|reached| *reached >= epoch).await;
    }

    /// Continues in another epoch: the changes published so far belong to a lost history. Every watch finds
    /// out when it reads the log, whose compaction mark is above its cursor.
    pub fn restart(&self, head: Revision, epoch: u64) {
        self.metrics.lost_histories.inc();
        self.reset(head);
        self.epoch.send_replace(epoch);
    }

    /// All changes up to here were published.
    pub fn head(&self) -> Revision {
        Revision(self.head.load(Ordering::Acquire))
    }

    /// Publishes the changes that follow the head. Returns the watches that they touch, to be rung.
    pub fn publish(&self, changes: Vec<Arc<SharedChange>>) -> Bells {
        let Some(last) = changes.last().map(|change| change.revision) else { return Bells::default() };
        debug_assert_eq!(changes[0].revision, self.head().next(), "the hub has no gaps");
        self.metrics.events.inc_by(changes.len() as u64);
        let mut order = held(&self.order);
        let mut by_topic: HashMap<Resource, (Arc<Topic>, Vec<Arc<SharedChange>>)> = HashMap::new();
        for change in changes {
            let resource = &change.key.resource;
            let (topic, changes) =
                by_topic.entry(resource.clone()).or_insert_with(|| (self.topic(resource), Vec::new()));
            change.enter(&self.memory);
            order.push_back(Arc::clone(topic));
            changes.push(change);
        }
        let mut rung: Vec<Arc<Subscription>> = Vec::new();
        for (topic, changes) in by_topic.into_values() {
            topic.publish(changes, &mut rung);
        }
        self.evict(&mut order);
        // The head comes after the changes: a watch that sees it and is not rung has nothing to read up to
        // it.
        self.head.store(last.0, Ordering::Release);
        // The bells come last, so that a woken watch finds the whole batch.
        Bells(rung)
    }

    /// Waits until encoded frames have brought the memory over its limit.
    pub async fn exceeded(&self) {
        self.memory.exceeded().await;
    }

    /// Evicts the oldest changes until the rest is within the limits.
    pub fn trim(&self) {
        self.evict(&mut held(&self.order));
    }

    fn evict(&self, order: &mut VecDeque<Arc<Topic>>) {
        while order.len() > self.limits.events || self.memory.is_over() {
            let Some(topic) = order.pop_front() else { break };
            topic.evict();
        }
        self.metrics.ring_bytes.set(i64::try_from(self.memory.bytes()).unwrap_or(i64::MAX));
    }

    /// Continues from `head`, because the changes before it are gone from the log. Watches find out when they
    /// read it.
    pub fn reset(&self, head: Revision) {
        let mut order = held(&self.order);
        order.clear();
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.base = head;
        let before = self.head();
        let mut rung = Vec::new();
        for topic in topics.by_resource.values() {
            topic.reset(before, head, &mut rung);
        }
        self.head.store(head.0, Ordering::Release);
        for subscription in rung {
            subscription.ring();
        }
    }

    /// Ends all watches.
    pub fn close(&self) {
        // No other event ends them any more.
        self.epoch.send_replace(u64::MAX);
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.closed = true;
        let mut rung = Vec::new();
        for topic in topics.by_resource.values() {
            topic.close(&mut rung);
        }
        for subscription in rung {
            subscription.ring();
        }
    }

    fn subscribe(&self, scope: WatchScope, from: Revision) -> (Arc<Topic>, Arc<Subscription>) {
        let topic = self.topic(&scope.resource);
        let subscription = topic.subscribe(scope, from);
        (topic, subscription)
    }

    fn topic(&self, resource: &Resource) -> Arc<Topic> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(topic) = topics.by_resource.get(resource) {
            return Arc::clone(topic);
        }
        drop(topics);
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        let Topics { by_resource, base, closed } = &mut *topics;
        let topic = by_resource
            .entry(resource.clone())
            .or_insert_with(|| Arc::new(Topic::new(resource, *base, *closed)));
        Arc::clone(topic)
    }
}

#[cfg(test)]
mod tests;
