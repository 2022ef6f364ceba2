//! A controller: informers that name keys, a queue of them, and workers that reconcile.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use process::Shutdown;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cache::Cache;
use crate::handler::{CacheHandler, Delta, DeltaHandler, EventHandler};
use crate::informers::SharedInformers;
use crate::list_watch::ListWatch;
use crate::metrics::QueueMetrics;
use crate::queue::{Key, Priority, WorkQueue};
use crate::reconciler::ReconcileKey;
use crate::subscriptions::Subscriptions;
use crate::{Error, Result};

/// The time that workers have to finish their keys when a stop is requested.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// The wait after a server answered 429 Too Many Requests.
const TOO_MANY_REQUESTS_DELAY: Duration = Duration::from_secs(1);
/// The failures of one key in a row that are not logged as a warning: a conflict, or an object that is not there yet.
const QUIET_FAILURES: u32 = 3;

/// The end of a successful reconciliation: when the key comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// When something changes.
    Done,
    /// After this time, if nothing changes earlier.
    RequeueAfter(Duration),
}

/// The parts of a controller that its reconciler may use.
pub struct Context<K> {
    /// The work queue, for keys that depend on other keys.
    pub queue: WorkQueue<K>,
    /// The subscriptions to informers, for those that come and go.
    pub subscriptions: Subscriptions,
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), subscriptions: self.subscriptions.clone() }
    }
}

/// A controller that has not been started yet.
pub struct Controller<R: ReconcileKey> {
    name: Cow<'static, str>,
    reconciler: R,
    context: Context<R::Key>,
    starts: Vec<Start>,
    workers: usize,
}

/// A subscription that begins with the controller.
struct Start {
    name: String,
    informers: SharedInformers,
    list_watch: ListWatch,
    handler: Box<dyn EventHandler>,
}

impl<R: ReconcileKey> Controller<R> {
    /// A controller without informers, with one worker.
    pub fn new(name: impl Into<Cow<'static, str>>, reconciler: R) -> Self {
        let context = Context { queue: WorkQueue::default(), subscriptions: Subscriptions::default() };
        Self { name: name.into(), reconciler, context, starts: Vec::new(), workers: 1 }
    }

    /// Reconciles so many keys at the same time.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Lets flows of keys take turns, such as `|key| key.namespace.clone()`: of each flow one key, then the next of each. A namespace with ten
    /// thousand changes then delays another one by a single key. Without this, keys of one priority are taken in the order of their arrival.
    #[must_use]
    pub fn fair_by(self, flow_of: impl Fn(&R::Key) -> String + Send + Sync + 'static) -> Self {
        self.context.queue.fair_by(flow_of);
        self
    }

    /// Watches objects, and reconciles the keys that `keys` names for each delta. Objects are not kept: those that were deleted while the
    /// watch was interrupted have no delta.
    #[must_use]
    pub fn watch<T, I>(
        self,
        informers: &SharedInformers,
        list_watch: ListWatch,
        mut keys: impl FnMut(&Delta<'_, T>) -> I + Send + 'static,
    ) -> Self
    where
        T: DeserializeOwned + Send + Sync + 'static,
        I: IntoIterator<Item = R::Key>,
    {
        let queue = self.context.queue.clone();
        let each = move |delta: &Delta<'_, T>| enqueue(&queue, delta, keys(delta));
        self.handle(informers, list_watch, DeltaHandler::new(each, || {}))
    }

    /// As [`Controller::watch`], and keeps the objects in a cache, which has a change before its keys are reconciled.
    #[must_use]
    pub fn watch_into<T, I>(
        self,
        cache: &Cache<T>,
        informers: &SharedInformers,
        list_watch: ListWatch,
        mut keys: impl FnMut(&Delta<'_, T>) -> I + Send + 'static,
    ) -> Self
    where
        T: DeserializeOwned + Send + Sync + 'static,
        I: IntoIterator<Item = R::Key>,
    {
        let queue = self.context.queue.clone();
        let each = move |delta: &Delta<'_, T>| enqueue(&queue, delta, keys(delta));
        self.handle(informers, list_watch, CacheHandler::new(cache.clone(), each))
    }

    /// Watches objects with an event handler of one's own.
    #[must_use]
    pub fn handle(
        mut self,
        informers: &SharedInformers,
        list_watch: ListWatch,
        handler: impl EventHandler + 'static,
    ) -> Self {
        let name = format!("{list_watch}#{}", self.starts.len());
        let (informers, handler) = (informers.clone(), Box::new(handler));
        self.starts.push(Start { name, informers, list_watch, handler });
        self
    }

    /// The queue and the subscriptions, for handlers that add keys by themselves.
    #[must_use]
    pub fn context(&self) -> Context<R::Key> {
        self.context.clone()
    }

    /// Subscribes to the informers, and works until a stop is requested: first all lists have to be complete, then keys are reconciled.
    /// A worker that has a key when the request comes finishes it, if that takes no longer than half a second.
    pub fn run(self, shutdown: Shutdown) -> impl Future<Output = ()> + Send {
        let Self { name, reconciler, context, starts, workers } = self;
        let end = EndOfSubscriptions(context.subscriptions.clone());
        for Start { name, informers, list_watch, handler } in starts {
            context.subscriptions.add(name, &informers, list_watch, handler);
        }
        work(Work { name, reconciler, context }, end, workers, shutdown)
    }
}

/// Adds the keys of a delta: the objects of a list with low priority, changes before them.
fn enqueue<K: Key, T>(queue: &WorkQueue<K>, delta: &Delta<'_, T>, keys: impl IntoIterator<Item = K>) {
    let priority = if delta.is_initial { Priority::Low } else { Priority::Normal };
    keys.into_iter().for_each(|key| queue.add_with_priority(key, priority));
}

async fn work<R: ReconcileKey>(work: Work<R>, _end: EndOfSubscriptions, workers: usize, shutdown: Shutdown) {
    tokio::select! {
        () = work.context.subscriptions.synced() => tracing::debug!(controller = &*work.name, "controller started"),
        () = shutdown.requested() => return,
    }
    let work = Arc::new(work);
    let mut stop = std::pin::pin!(shutdown.requested());
    // A worker is a task that ends when no key waits, so that idle workers cost nothing.
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = tasks.join_next() => drop(tasks::propagate(ended)),
            key = work.context.queue.next(), if tasks.len() < workers => {
                tasks.spawn(Arc::clone(&work).reconcile_all(key, shutdown.clone()));
            }
        }
    }
    // Unfinished keys come again after the next start: dropping the tasks ends them.
    let _ = timeout(STOP_TIMEOUT, async { while tasks.join_next().await.is_some() {} }).await;
}

/// Ends the subscriptions with their controller, also if that is dropped.
pub(crate) struct EndOfSubscriptions(pub(crate) Subscriptions);

impl Drop for EndOfSubscriptions {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct Work<R: ReconcileKey> {
    name: Cow<'static, str>,
    reconciler: R,
    context: Context<R::Key>,
}

impl<R: ReconcileKey> Work<R> {
    /// Reconciles a key, and others as long as some wait.
    async fn reconcile_all(self: Arc<Self>, first: R::Key, shutdown: Shutdown) {
        let mut next = Some(first);
        while let Some(key) = next.filter(|_| !shutdown.is_requested()) {
            self.reconcile(key).await;
            next = self.context.queue.next_now();
        }
    }

    async fn reconcile(&self, key: R::Key) {
        let ended = AssertUnwindSafe(self.reconciler.reconcile(&key, &self.context)).catch_unwind().await;
        let panicked = |_| Err(Error::other("the reconciler panicked; this is a defect of the program"));
        self.note(&key, ended.unwrap_or_else(panicked));
    }

    fn note(&self, key: &R::Key, outcome: Result<Outcome>) {
        let queue = &self.context.queue;
        match outcome {
            Ok(outcome) => {
                queue.forget(key);
                if let Outcome::RequeueAfter(delay) = outcome {
                    queue.requeue_after(key.clone(), delay);
                }
            }
            // That says nothing about the key: with a backoff it would still wait when the server has time again.
            Err(error) if error.is_too_many_requests() => {
                queue.requeue_after(key.clone(), TOO_MANY_REQUESTS_DELAY);
            }
            Err(error) => {
                let (controller, failures) = (&*self.name, queue.retry(key.clone()));
                if failures > QUIET_FAILURES {
                    tracing::warn!(controller, ?key, failures, %error, "cannot reconcile; retrying");
                } else {
                    tracing::debug!(controller, ?key, failures, %error, "cannot reconcile; retrying");
                }
            }
        }
        queue.done(key);
    }
}

/// A controller of any kind, ready to run.
pub trait Run: Send {
    /// Its name.
    fn name(&self) -> Cow<'static, str>;

    /// The metrics of its queue.
    fn metrics(&self) -> QueueMetrics;

    /// Subscribes to its informers at once, and works until a stop is requested.
    fn run(self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, ()>;
}

impl<R: ReconcileKey> Run for Controller<R> {
    fn name(&self) -> Cow<'static, str> {
        self.name.clone()
    }

    fn metrics(&self) -> QueueMetrics {
        QueueMetrics(self.context.queue.measured())
    }

    fn run(self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, ()> {
        (*self).run(shutdown).boxed()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    struct Nothing;

    impl ReconcileKey for Nothing {
        type Key = u32;

        async fn reconcile(&self, _: &u32, _: &Context<u32>) -> Result<Outcome> {
            Ok(Outcome::Done)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_met_a_busy_server_has_no_backoff() {
        let Controller { name, reconciler, context, .. } = Controller::new("test", Nothing);
        let work = Work { name, reconciler, context };
        let queue = &work.context.queue;
        queue.add(1);
        let begin = Instant::now();
        for _ in 0..10 {
            let key = queue.next().await;
            let busy = kube::core::Status::failure("Too many requests", "TooManyRequests").with_code(429);
            work.note(&key, Err(Error::Api(busy.boxed())));
        }
        queue.next().await;
        assert_eq!(begin.elapsed().as_secs(), 10);
    }
}
