//! A watch that keeps nothing, and says when it has seen everything.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::{Change, Event, Listener, Result};

/// Hands changes on. After the present objects it says so, each time that it had to begin anew: what went meanwhile is not mentioned
/// then, and whoever waits for objects to go has to look.
pub(super) struct Following<T, E, S> {
    each: E,
    synced: S,
    view: PhantomData<fn() -> T>,
}

impl<T, E, S> Following<T, E, S>
where
    T: DeserializeOwned + Send + Sync + 'static,
    E: FnMut(&Change<'_, T>) + Send,
    S: FnMut() + Send,
{
    pub fn new(each: E, synced: S) -> Self {
        Self { each, synced, view: PhantomData }
    }
}

impl<T, E, S> Listener for Following<T, E, S>
where
    T: DeserializeOwned + Send + Sync + 'static,
    E: FnMut(&Change<'_, T>) + Send,
    S: FnMut() + Send,
{
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        let (key, line, is_gone) = match event {
            Event::Seen(key, line) => (key, line, false),
            Event::Gone(key, line) => (key, line, true),
            Event::Synced => {
                (self.synced)();
                return Ok(());
            }
            Event::Reset | Event::NotServed => return Ok(()),
        };
        (self.each)(&Change { key, object: &*line.read()?, before: None, is_gone });
        Ok(())
    }
}
