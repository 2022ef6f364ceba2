//! One watch: a cursor that reads recent changes from memory and older ones from the log.

use std::sync::Arc;

use model::Revision;

use super::Hub;
use super::topic::{RingRead, Subscription, Topic};
use crate::engine::{Bound, Engine};
use crate::event::{Event, EventKind, SharedChange, WatchScope};
use crate::types::Error;

/// Changes that a watch takes from memory at once: few enough to hold the lock only for microseconds.
const CHUNK: usize = 256;

/// Bytes of values that a watch takes at once, but for one change of any size: a client that stops reading
/// holds no more than these.
const CHUNK_BYTES: usize = 256 << 10;

/// Size of a watch's read of the log.
const LOG_CHUNK: Bound = Bound { changes: 500, bytes: CHUNK_BYTES };

/// The changes of a scope after a revision, as they come.
pub struct Watch {
    hub: Arc<Hub>,
    engine: Arc<dyn Engine>,
    topic: Arc<Topic>,
    subscription: Arc<Subscription>,
    /// Everything up to here was given out or does not concern this watch.
    cursor: Revision,
}

impl Watch {
    pub(crate) fn new(hub: Arc<Hub>, engine: Arc<dyn Engine>, scope: WatchScope, from: Revision) -> Self {
        let (topic, subscription) = hub.subscribe(scope, from);
        hub.metrics.watchers.inc();
        Self { hub, engine, topic, subscription, cursor: from }
    }

    /// Waits for the next events, in revision order; never empty. Cancel safe: events that were not returned
    /// come with the next call.
    ///
    /// [`Error::Expired`] if it fell behind the compaction mark: the watch is over, list again.
    /// [`Error::Unavailable`] if the log could not be read: the next call tries again.
    pub async fn next(&mut self) -> Result<Vec<Event>, Error> {
        loop {
            let (changes, through) = match self.topic.look(&self.subscription, self.cursor, CHUNK) {
                RingRead::Nothing => {
                    self.subscription.rung().await;
                    continue;
                }
                RingRead::Recent(mut changes) => {
                    changes.truncate(fitting(&changes));
                    let through = changes.last().map_or(self.cursor, |change| change.revision);
                    (changes, through)
                }
                RingRead::Behind(after) => self.read_log(after).await?,
                RingRead::Closed => {
                    return Err(Error::Unavailable { reason: "the store is closed".to_owned() });
                }
            };
            let mut events = Vec::new();
            for (kind, change) in self.select(changes) {
                events.push(Event::load(kind, change, &*self.engine).await?);
            }
            // Only now, when nothing can interrupt any more.
            self.cursor = through;
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }

    /// Whether every change so far was returned, or does not concern this watch.
    pub fn has_seen_all(&self) -> bool {
        self.subscription.first().is_none()
    }

    /// Everything up to this revision was returned or does not concern this watch. It also advances while no
    /// change concerns it.
    pub fn position(&self) -> Revision {
        self.topic.position(&self.subscription, self.cursor, &self.hub.head)
    }

    async fn read_log(&self, after: Revision) -> Result<(Vec<Arc<SharedChange>>, Revision), Error> {
        self.hub.metrics.log_reads.inc();
        let piece = self.engine.changes(Some(self.topic.resource()), after, LOG_CHUNK).await?;
        let changes = piece.changes.into_iter().map(|change| Arc::new(SharedChange::new(change)));
        Ok((changes.collect(), piece.through))
    }

    fn select(
        &self,
        changes: Vec<Arc<SharedChange>>,
    ) -> impl Iterator<Item = (EventKind, Arc<SharedChange>)> {
        let scope = &self.subscription.scope;
        changes.into_iter().filter_map(move |change| Some((scope.kind(&change)?, change)))
    }
}

/// Number of changes that are taken at once, at least one.
fn fitting(changes: &[Arc<SharedChange>]) -> usize {
    let mut bytes = 0;
    let fits = |change: &&Arc<SharedChange>| {
        bytes += change.value.len();
        bytes <= CHUNK_BYTES
    };
    changes.iter().take_while(fits).count().max(1)
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.topic.unsubscribe(&self.subscription);
        self.hub.metrics.watchers.dec();
    }
}
