//! The subscriptions of a controller to informers: they may come and go while it runs, and end with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::Result;
use crate::handler::{EventHandler, WatchEvent};
use crate::informers::{Registration, SharedInformers};
use crate::list_watch::ListWatch;

/// The event handlers of one controller, by name. Clones are the same.
#[derive(Clone)]
pub struct Subscriptions(Arc<Shared>);

struct Shared {
    running: Mutex<Running>,
    /// The number of subscriptions that have not received the whole list yet.
    unsynced: watch::Sender<usize>,
}

#[derive(Default)]
struct Running {
    by_name: HashMap<String, Subscription>,
    has_begun: bool,
    has_ended: bool,
}

/// One event handler that receives events.
struct Subscription {
    pending: Arc<Pending>,
    _registration: Registration,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.pending.end();
    }
}

impl Default for Subscriptions {
    fn default() -> Self {
        let unsynced = watch::Sender::new(0);
        Self(Arc::new(Shared { running: Mutex::default(), unsynced }))
    }
}

impl Subscriptions {
    /// Subscribes a handler under a name, unless there is one of this name.
    pub fn add(
        &self,
        name: impl Into<String>,
        informers: &SharedInformers,
        list_watch: ListWatch,
        handler: impl EventHandler + 'static,
    ) {
        let mut running = self.running();
        let name = name.into();
        running.has_begun = true;
        if running.has_ended || running.by_name.contains_key(&name) {
            return;
        }
        let pending = Pending::new(&self.0.unsynced);
        let counted = Counted { pending: Arc::clone(&pending), handler };
        let registration = informers.register(list_watch, Box::new(counted));
        running.by_name.insert(name, Subscription { pending, _registration: registration });
    }

    /// Ends the subscription of this name, if there is one.
    pub fn remove(&self, name: &str) {
        self.running().by_name.remove(name);
    }

    /// Ends the subscriptions whose names do not pass.
    pub fn retain(&self, mut keep: impl FnMut(&str) -> bool) {
        self.running().by_name.retain(|name, _| keep(name));
    }

    /// Waits until every handler has received the whole list of its informer.
    pub async fn synced(&self) {
        // This holds the sender, so that the channel is open.
        let _ = self.0.unsynced.subscribe().wait_for(|unsynced| *unsynced == 0).await;
    }

    /// Whether every handler has received the whole list of its informer: a health check.
    ///
    /// # Errors
    /// A list is not complete, or nothing was subscribed yet.
    pub fn check(&self) -> std::result::Result<(), String> {
        match *self.0.unsynced.borrow() {
            0 if self.running().has_begun => Ok(()),
            0 => Err("the informers were not started yet".to_owned()),
            unsynced => Err(format!("{unsynced} informers are not synced")),
        }
    }

    /// Ends all of them, for good.
    pub(crate) fn end(&self) {
        let mut running = self.running();
        running.has_ended = true;
        running.by_name.clear();
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription that counts as unsynced until its list is complete, or it ends.
struct Pending {
    unsynced: watch::Sender<usize>,
    has_ended: AtomicBool,
}

impl Pending {
    fn new(unsynced: &watch::Sender<usize>) -> Arc<Self> {
        unsynced.send_modify(|count| *count += 1);
        Arc::new(Self { unsynced: unsynced.clone(), has_ended: AtomicBool::new(false) })
    }

    fn end(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            self.unsynced.send_modify(|count| *count -= 1);
        }
    }
}

struct Counted<H> {
    pending: Arc<Pending>,
    handler: H,
}

impl<H: EventHandler> EventHandler for Counted<H> {
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        let handled = self.handler.handle(event);
        if matches!(event, WatchEvent::InitDone) {
            self.pending.end();
        }
        handled
    }
}
