//! A controller: watches that name keys, a queue of them, and workers that reconcile.

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
use crate::metrics::Counts;
use crate::queue::{Key, Queue};
use crate::sources::{Change, Keeping, Passing, Sources};
use crate::watch::{Listener, Target};
use crate::watches::Watches;
use crate::{Error, Result};

/// How long workers have to bring to an end what they are at when a stop is requested.
const LAST_LOOK: Duration = Duration::from_millis(500);
/// How long to leave a server alone that is busy.
const BUSY: Duration = Duration::from_secs(1);
/// Failures of one key up to this are not worth a line: somebody else was faster, or is not there yet.
const QUIET_FAILURES: u32 = 3;

/// What brings the world closer to what is wanted.
pub trait Reconcile: Send + Sync + 'static {
    /// What is decided about as one.
    type Key: Key;

    /// Looks at what a key stands for, decides, and does it. A key says what to look at, never what to do: it comes at
    /// the start, after changes, after failures and by time, and more often than needed.
    fn reconcile(
        &self,
        key: &Self::Key,
        context: &Context<Self::Key>,
    ) -> impl Future<Output = Result<Next>> + Send;
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Done,
    /// After this time, if nothing changes earlier.
    After(Duration),
}

/// What a reconciler may use of its controller.
pub struct Context<K> {
    /// The keys that wait.
    pub queue: Queue<K>,
    /// The watches, for those that come and go.
    pub sources: Sources,
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), sources: self.sources.clone() }
    }
}

/// A controller that has not been started yet.
pub struct Controller<R: Reconcile> {
    name: &'static str,
    reconciler: R,
    context: Context<R::Key>,
    starts: Vec<Start>,
    workers: usize,
}

/// A watch that begins with the controller.
struct Start {
    name: String,
    watches: Watches,
    target: Target,
    listener: Box<dyn Listener>,
}

impl<R: Reconcile> Controller<R> {
    /// A controller without watches, with one worker.
    pub fn new(name: &'static str, reconciler: R) -> Self {
        let context = Context { queue: Queue::default(), sources: Sources::default() };
        Self { name, reconciler, context, starts: Vec::new(), workers: 1 }
    }

    /// Reconciles so many keys side by side.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Watches objects, and reconciles the keys that `keys` names for each change. Nothing is remembered: after a watch
    /// that had to begin anew, objects that went meanwhile are not mentioned.
    #[must_use]
    pub fn watch<T, I>(
        self,
        watches: &Watches,
        target: Target,
        mut keys: impl FnMut(&Change<'_, T>) -> I + Send + 'static,
    ) -> Self
    where
        T: DeserializeOwned + Send + Sync + 'static,
        I: IntoIterator<Item = R::Key>,
    {
        let queue = self.context.queue.clone();
        let each = move |change: &Change<'_, T>| keys(change).into_iter().for_each(|key| queue.add(key));
        self.listen(watches, target, Passing::new(each))
    }

    /// As [`Controller::watch`], and keeps the objects in a cache, which has a change before its keys are reconciled.
    #[must_use]
    pub fn watch_into<T, I>(
        self,
        cache: &Cache<T>,
        watches: &Watches,
        target: Target,
        mut keys: impl FnMut(&Change<'_, T>) -> I + Send + 'static,
    ) -> Self
    where
        T: DeserializeOwned + Send + Sync + 'static,
        I: IntoIterator<Item = R::Key>,
    {
        let queue = self.context.queue.clone();
        let each = move |change: &Change<'_, T>| keys(change).into_iter().for_each(|key| queue.add(key));
        self.listen(watches, target, Keeping::new(cache.clone(), each))
    }

    /// Watches with a listener of one's own.
    #[must_use]
    pub fn listen(mut self, watches: &Watches, target: Target, listener: impl Listener + 'static) -> Self {
        let name = format!("{target}#{}", self.starts.len());
        self.starts.push(Start { name, watches: watches.clone(), target, listener: Box::new(listener) });
        self
    }

    /// What the watches and the queue are, for who makes keys in other ways.
    #[must_use]
    pub fn context(&self) -> Context<R::Key> {
        self.context.clone()
    }

    /// Starts the watches, and works until a stop is requested: first all present objects are seen, then keys are reconciled.
    /// What a worker is at when the request comes it brings to its end, if that is near.
    pub fn run(self, shutdown: Shutdown) -> impl Future<Output = ()> + Send {
        let Self { name, reconciler, context, starts, workers } = self;
        let end = EndOfSources(context.sources.clone());
        for Start { name, watches, target, listener } in starts {
            context.sources.start(name, &watches, target, listener);
        }
        work(Work { name, reconciler, context }, end, workers, shutdown)
    }
}

async fn work<R: Reconcile>(work: Work<R>, _end: EndOfSources, workers: usize, shutdown: Shutdown) {
    tokio::select! {
        () = work.context.sources.synced() => tracing::debug!(controller = work.name, "started"),
        () = shutdown.requested() => return,
    }
    let work = Arc::new(work);
    let mut stop = std::pin::pin!(shutdown.requested());
    // A worker is a task that ends when no key waits, so that those who have nothing to do cost nothing.
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = tasks.join_next() => drop(tasks::propagate(ended)),
            key = work.context.queue.next(), if tasks.len() < workers => {
                tasks.spawn(Arc::clone(&work).look_at_all(key, shutdown.clone()));
            }
        }
    }
    // Who is at many things does the rest after the next start: dropping the tasks ends them.
    let _ = timeout(LAST_LOOK, async { while tasks.join_next().await.is_some() {} }).await;
}

/// Watches end with their controller, also if that is dropped.
pub(crate) struct EndOfSources(pub(crate) Sources);

impl Drop for EndOfSources {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct Work<R: Reconcile> {
    name: &'static str,
    reconciler: R,
    context: Context<R::Key>,
}

impl<R: Reconcile> Work<R> {
    /// Looks at a key, and at others as long as some wait.
    async fn look_at_all(self: Arc<Self>, first: R::Key, shutdown: Shutdown) {
        let mut next = Some(first);
        while let Some(key) = next.filter(|_| !shutdown.is_requested()) {
            self.look_at(key).await;
            next = self.context.queue.next_now();
        }
    }

    async fn look_at(&self, key: R::Key) {
        let looked = AssertUnwindSafe(self.reconciler.reconcile(&key, &self.context)).catch_unwind().await;
        let panicked = |_| Err(Error::other("it panicked; this is a defect of the program"));
        self.note(&key, looked.unwrap_or_else(panicked));
    }

    fn note(&self, key: &R::Key, outcome: Result<Next>) {
        let queue = &self.context.queue;
        match outcome {
            Ok(next) => {
                queue.forget(key);
                if let Next::After(delay) = next {
                    queue.add_after(key.clone(), delay);
                }
            }
            // That says nothing about the key: if it waited longer and longer, it would wait when the server has time again.
            Err(error) if error.is_busy() => queue.add_after(key.clone(), BUSY),
            Err(error) => {
                let failures = queue.retry(key.clone());
                if failures > QUIET_FAILURES {
                    tracing::warn!(controller = self.name, ?key, failures, %error, "trying again");
                } else {
                    tracing::debug!(controller = self.name, ?key, failures, %error, "trying again");
                }
            }
        }
        queue.done(key);
    }
}

/// A controller of any kind, ready to run.
pub trait Run: Send {
    /// Its name, and what its queue counts.
    fn counts(&self) -> (&'static str, Arc<Counts>);

    /// Starts its watches at once, and works until a stop is requested.
    fn run(self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, ()>;
}

impl<R: Reconcile> Run for Controller<R> {
    fn counts(&self) -> (&'static str, Arc<Counts>) {
        (self.name, self.context.queue.counts())
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

    impl Reconcile for Nothing {
        type Key = u32;

        async fn reconcile(&self, _: &u32, _: &Context<u32>) -> Result<Next> {
            Ok(Next::Done)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_meets_a_busy_server_does_not_wait_longer_each_time() {
        let Controller { name, reconciler, context, .. } = Controller::new("test", Nothing);
        let work = Work { name, reconciler, context };
        let queue = &work.context.queue;
        queue.add(1);
        let begin = Instant::now();
        for _ in 0..10 {
            let key = queue.next().await;
            let busy = kube::core::Status::failure("Too many requests", "TooManyRequests").with_code(429);
            work.note(&key, Err(Error::Refused(busy.boxed())));
        }
        queue.next().await;
        assert_eq!(begin.elapsed().as_secs(), 10);
    }
}
