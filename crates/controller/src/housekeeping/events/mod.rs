//! Deletes events some time after they were last written.
//!
//! Nothing is remembered of them. While there are events, all are looked at in pages when the first of them has to go; while there is
//! none, a watch waits for one.

mod decide;

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, ListParams, Preconditions};

use self::decide::{Event, Metadata, Step, decide, next_look};
use super::following::Following;
use super::kinds::EVENTS;
use super::views::There;
use crate::{Context, Controller, Next, Objects, Reconcile, Result, Target, Watches};

/// Events that are read at once.
const PAGE: u32 = 500;
/// Events that are deleted at once.
const AT_ONCE: usize = 16;
/// The watch that runs while there are no events.
const FIRST: &str = "the first event";

/// What deletes events so long after their last write.
pub fn expiry(client: &Client, ttl: Duration) -> Controller<impl Reconcile<Key = ()> + use<>> {
    let controller = Controller::new(
        "event-expiry",
        Expiry { client: client.clone(), watches: Watches::new(client.clone()), ttl },
    );
    controller.context().queue.add(());
    controller
}

struct Expiry {
    client: Client,
    watches: Watches,
    ttl: Duration,
}

impl Reconcile for Expiry {
    type Key = ();

    async fn reconcile(&self, (): &(), context: &Context<()>) -> Result<Next> {
        let now = Timestamp::now();
        if let Some(end) = self.pass(now).await? {
            context.sources.stop(FIRST);
            return Ok(Next::After(next_look(end, self.ttl, now)));
        }
        let queue = context.queue.clone();
        let bell = Following::<There, _, _>::new(move |_| queue.add(()), || {});
        context.sources.start(FIRST, &self.watches, Target::all(EVENTS).metadata(), bell);
        Ok(Next::Done)
    }
}

impl Expiry {
    /// Deletes what has to go. The time at which the first of the others has to.
    async fn pass(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        let events = Objects::new(&self.client, &EVENTS.resource(), None);
        let (mut first, mut selection) = (None, ListParams::default().limit(PAGE));
        loop {
            let page = events.list_metadata::<Event>(&selection).await?;
            let mut ended = Vec::new();
            for Event { metadata } in page.items {
                match decide(&metadata, self.ttl, now) {
                    Step::Delete => ended.push(metadata),
                    Step::KeepUntil(end) => {
                        first = Some(first.map_or(end, |first: Timestamp| first.min(end)))
                    }
                }
            }
            let deletions = stream::iter(ended).map(|event| self.delete(event));
            deletions.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
            if page.metadata.continue_token.is_empty() {
                return Ok(first);
            }
            selection.continue_token = Some(page.metadata.continue_token);
        }
    }

    /// Deletes an event, unless it has been written since.
    async fn delete(&self, event: Metadata) -> Result<()> {
        let events = Objects::new(&self.client, &EVENTS.resource(), Some(&event.namespace));
        let preconditions =
            Preconditions { uid: Some(event.uid), resource_version: Some(event.resource_version) };
        let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match events.delete(&event.name, &how).await {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }
}
