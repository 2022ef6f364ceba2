//! Faults that tests inject into tasks and threads by their names.

use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use tokio::sync::Notify;

use crate::held;

/// The places at which the tasks of one owner can be made to panic.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<(Cow<'static, str>, Arc<Notify>)>>);

impl Faults {
    /// A task that panics when a fault of its name is injected.
    pub fn wrap<T>(
        &self,
        name: impl Into<Cow<'static, str>>,
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        let fault = self.register(name.into());
        let mut fault = Box::pin(async move { fault.notified().await });
        let mut task = Box::pin(task);
        poll_fn(move |context| {
            assert!(fault.poll_unpin(context).is_pending(), "an injected fault");
            task.poll_unpin(context)
        })
    }

    /// The names of all tasks that were started, in this order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        held(&self.0).iter().map(|(name, _)| name.to_string()).collect()
    }

    /// Makes the task of this name panic. Returns whether there is one.
    pub fn inject(&self, name: &str) -> bool {
        self.of(name).inspect(|fault| fault.notify_one()).is_some()
    }

    pub(crate) fn register(&self, name: Cow<'static, str>) -> Arc<Notify> {
        let fault = Arc::new(Notify::new());
        held(&self.0).push((name, Arc::clone(&fault)));
        fault
    }

    /// Panics if a fault of this name was injected.
    pub(crate) fn strike(&self, name: &str) {
        let is_injected = self.of(name).is_some_and(|fault| fault.notified().now_or_never().is_some());
        assert!(!is_injected, "an injected fault");
    }

    fn of(&self, name: &str) -> Option<Arc<Notify>> {
        held(&self.0).iter().find(|(known, _)| known == name).map(|(_, fault)| Arc::clone(fault))
    }
}
