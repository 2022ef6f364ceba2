//! Shared informers: one list and watch per [`ListWatch`], however many handlers are registered for it.
//!
//! A handler that is registered while the watch runs gets the present objects from a request of its own, and the changes behind them from the
//! shared watch. An informer that waits holds no buffer, and its code exists once for all types: objects are passed on as bytes.

mod informer;
mod list;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use tasks::{TaskFailure, Tasks};
use tokio::sync::Notify;

use self::informer::Informer;
use crate::handler::{EventHandler, WatchEvent};
use crate::list_watch::ListWatch;

/// The informers of a client, one for each [`ListWatch`]. Clones are the same.
#[derive(Clone)]
pub struct SharedInformers(Arc<Shared>);

struct Shared {
    client: Client,
    running: Mutex<Running>,
    /// Whether the server refused `sendInitialEvents` and answered a list: informers list first from then on.
    must_list: AtomicBool,
}

#[derive(Default)]
struct Running {
    by_list_watch: HashMap<ListWatch, Arc<Registrations>>,
    tasks: Tasks,
    has_started: bool,
}

/// The handlers that wait for their informer to take them in.
#[derive(Default)]
struct Registrations {
    pending: Mutex<Vec<Handler>>,
    /// Wakes the informer when a handler was registered or dropped.
    changed: Notify,
}

/// A registered handler.
struct Handler {
    handler: Box<dyn EventHandler>,
    is_dropped: Arc<AtomicBool>,
    /// The resource version up to which the handler has received everything; none before its list is complete.
    position: Option<u64>,
}

/// The registration of a handler; dropping it ends it.
pub(crate) struct Registration {
    registrations: Arc<Registrations>,
    is_dropped: Arc<AtomicBool>,
    /// The task of the informer lives as long as a handler that needs it.
    _informers: SharedInformers,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        self.registrations.changed.notify_one();
    }
}

impl SharedInformers {
    /// Informers of a client that may list and watch all that is asked for.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let informers = Self::paused(client);
        informers.start();
        informers
    }

    /// As [`SharedInformers::new`], but no informer begins before [`SharedInformers::start`]: handlers that are registered by then share
    /// one list.
    #[must_use]
    pub fn paused(client: Client) -> Self {
        let (running, must_list) = (Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Shared { client, running, must_list }))
    }

    /// Starts all informers.
    pub fn start(&self) {
        let mut running = self.0.running();
        running.has_started = true;
        let Running { by_list_watch, tasks, .. } = &mut *running;
        for (list_watch, registrations) in by_list_watch {
            tasks.start_finite(format!("the informer of {list_watch}"), self.task(list_watch, registrations));
        }
    }

    /// Resolves with the first informer that panicked; never where none does.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        self.0.running().tasks.failed()
    }

    /// Makes the informer of this name panic. Returns false if there is none.
    #[cfg(test)]
    pub(crate) fn inject_fault(&self, name: &str) -> bool {
        self.0.running().tasks.inject_fault(name)
    }

    /// Registers a handler: it gets the present objects first, then every change.
    pub(crate) fn register(&self, list_watch: ListWatch, handler: Box<dyn EventHandler>) -> Registration {
        let is_dropped = Arc::new(AtomicBool::new(false));
        let handler = Handler { handler, is_dropped: Arc::clone(&is_dropped), position: None };
        let mut running = self.0.running();
        let Running { by_list_watch, tasks, has_started } = &mut *running;
        let registrations = by_list_watch.entry(list_watch).or_insert_with_key(|list_watch| {
            let registrations = Arc::default();
            if *has_started {
                let task = self.task(list_watch, &registrations);
                tasks.start_finite(format!("the informer of {list_watch}"), task);
            }
            registrations
        });
        registrations.pending().push(handler);
        registrations.changed.notify_one();
        Registration { registrations: Arc::clone(registrations), is_dropped, _informers: self.clone() }
    }

    fn task(
        &self,
        list_watch: &ListWatch,
        registrations: &Arc<Registrations>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let informer = Informer::new(list_watch.clone(), Arc::clone(registrations));
        informer.run(self.0.client.clone(), Arc::downgrade(&self.0))
    }
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registrations {
    fn pending(&self) -> MutexGuard<'_, Vec<Handler>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler {
    fn handle(&mut self, list_watch: &ListWatch, event: WatchEvent<'_>) {
        if self.is_dropped.load(Ordering::Relaxed) {
            return;
        }
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.handler.handle(event))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%list_watch, %error, "informer cannot parse an object; skipping it");
            }
            Err(_) => {
                tracing::error!(%list_watch, "event handler panicked; this is a defect of the program");
            }
        }
    }
}

#[cfg(test)]
mod tests;
