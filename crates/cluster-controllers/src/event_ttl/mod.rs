//! Deletes events some time after their last write. kube-apiserver leaves that to etcd.
//!
//! No event is cached. While there are events, all are listed page by page when the first of them expires; while there
//! are none, an informer waits for one. A pass deletes while it lists, so that it is not a `Reconciler`: all events at
//! once may not fit into memory.

mod decide;

use std::time::Duration;

use controller::{
    Context, Controller, DeltaHandler, ListWatch, Objects, Outcome, ReconcileKey, Result, SharedInformers,
};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, ListParams, Preconditions};
use process::Shutdown;
use tasks::TaskFailure;

use self::decide::{Event, EventStep, Metadata, decide, next_pass};
use crate::kinds::EVENTS;
use crate::views::Existence;

/// The number of concurrent deletions.
const CONCURRENT_DELETIONS: usize = 16;
/// The watch that runs while there are no events.
const FIRST_EVENT: &str = "the first event";

/// Deletes events `ttl` after their last write, until a stop is requested.
///
/// # Errors
/// The informer of events panicked: without it the first event after an idle period would stay.
pub async fn expiry(
    client: Client,
    ttl: Duration,
    shutdown: Shutdown,
) -> std::result::Result<(), TaskFailure> {
    let informers = SharedInformers::new(client.clone());
    let failed = informers.failed();
    let controller = Controller::new("event-expiry", Expiry { client, informers, ttl });
    controller.context().queue.add(());
    tokio::select! {
        failure = failed => Err(failure),
        () = controller.run(shutdown) => Ok(()),
    }
}

struct Expiry {
    client: Client,
    informers: SharedInformers,
    ttl: Duration,
}

impl ReconcileKey for Expiry {
    type Key = ();

    async fn reconcile(&self, (): &(), context: &Context<()>) -> Result<Outcome> {
        let now = Timestamp::now();
        if let Some(end) = self.pass(now).await? {
            context.subscriptions.remove(FIRST_EVENT);
            return Ok(Outcome::RequeueAfter(next_pass(end, self.ttl, now)));
        }
        let queue = context.queue.clone();
        let handler = DeltaHandler::<Existence, _, _>::new(move |_| queue.add(()), || {});
        context.subscriptions.add(
            FIRST_EVENT,
            &self.informers,
            ListWatch::all(EVENTS).metadata_only(),
            handler,
        );
        Ok(Outcome::Done)
    }
}

impl Expiry {
    /// Deletes expired events. Returns the expiry of the first remaining one.
    async fn pass(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        let events = Objects::new(&self.client, &EVENTS.resource(), None);
        let mut first: Option<Timestamp> = None;
        let mut pages = events.metadata_pages::<Event>(ListParams::default());
        while let Some(page) = pages.next().await? {
            let mut ended = Vec::new();
            for Event { metadata } in page {
                match decide(&metadata, self.ttl, now) {
                    EventStep::Delete => ended.push(metadata),
                    EventStep::KeepUntil(end) => first = Some(first.map_or(end, |first| first.min(end))),
                }
            }
            let deletions = stream::iter(ended).map(|event| self.delete(event));
            deletions.buffer_unordered(CONCURRENT_DELETIONS).try_collect::<()>().await?;
        }
        Ok(first)
    }

    /// Deletes an event, unless it was written in the meantime.
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
