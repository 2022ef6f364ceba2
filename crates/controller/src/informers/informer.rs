//! One informer: the present objects, then every change, continued from the same resource version when a connection is lost.
//!
//! The present objects come from a watch with `sendInitialEvents`. A server that refuses it is listed page by page, and watched from the
//! resource version of the list.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use kube::core::Status;

use super::list::ListPage;
use super::{Handler, Registrations, Shared};
use crate::handler::WatchEvent;
use crate::list_watch::{ListWatch, PageRequest};
use crate::objects::api_error;
use crate::raw_object::{EventType, Head, RawObject, key_of_item};
use crate::{Error, Result};

/// The wait before the next attempt when a watch cannot be opened, at first and at most.
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(30);
/// Longer than the event of any object.
const LINE_BYTES_MAX: usize = 64 << 20;
/// The annotation of the bookmark behind the last of the present objects.
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// The number of objects on a page of a list.
const PAGE: u32 = 500;

/// A list and watch with its handlers.
pub(super) struct Informer {
    list_watch: ListWatch,
    registrations: Arc<Registrations>,
    handlers: Vec<Handler>,
    /// Whether the server has sent anything since the last request.
    has_received: bool,
    /// Whether it sent more than bookmarks. A server that stops answers every watch with a bookmark, as often as it is asked.
    has_news: bool,
}

/// The purpose of a watch request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The present objects, for handlers that have not received them.
    Initial,
    /// Every change, for all handlers.
    Changes,
    /// The next request has more to say.
    Over,
}

impl Informer {
    pub(super) fn new(list_watch: ListWatch, registrations: Arc<Registrations>) -> Self {
        Self { list_watch, registrations, handlers: Vec::new(), has_received: false, has_news: false }
    }

    /// Lists and watches until no handler is left.
    pub(super) async fn run(mut self, client: Client, shared: Weak<Shared>) {
        let mut delay = FIRST_DELAY;
        loop {
            self.update_handlers();
            if self.handlers.is_empty() {
                if self.is_over(&shared) {
                    return;
                }
                continue;
            }
            (self.has_received, self.has_news) = (false, false);
            let ended = Box::pin(self.pass(&client, &shared)).await;
            if self.has_received {
                delay = FIRST_DELAY;
            }
            let list_watch = &self.list_watch;
            match ended {
                Ok(()) if self.has_news || self.has_registration_changes() => continue,
                Ok(()) => {}
                Err(error) if error.is_expired() => {
                    tracing::debug!(%list_watch, "informer lists again: {error}");
                    self.handlers.iter_mut().for_each(|handler| handler.position = None);
                }
                Err(error) if error.is_not_found() => {
                    tracing::debug!(%list_watch, "the server does not serve the resource; retrying");
                    for handler in &mut self.handlers {
                        handler.handle(list_watch, WatchEvent::NotServed);
                        handler.position = None;
                    }
                }
                Err(error) => tracing::warn!(%list_watch, %error, "informer cannot list or watch; retrying"),
            }
            self.pause(delay).await;
            delay = (delay * 2).min(LAST_DELAY);
        }
    }

    /// Waits, unless there is no handler to wait for.
    async fn pause(&mut self, delay: Duration) {
        let mut end = std::pin::pin!(tokio::time::sleep(delay));
        while !self.handlers.is_empty() {
            tokio::select! {
                () = &mut end => return,
                () = self.registrations.changed.notified() => self.update_handlers(),
            }
        }
    }

    fn update_handlers(&mut self) {
        self.handlers.append(&mut self.registrations.pending());
        self.drop_handlers();
    }

    fn drop_handlers(&mut self) {
        self.handlers.retain(|handler| !handler.is_dropped.load(Ordering::Relaxed));
    }

    /// Whether a handler was registered, or the last one dropped.
    fn has_registration_changes(&self) -> bool {
        let is_last = self.handlers.iter().all(|handler| handler.is_dropped.load(Ordering::Relaxed));
        is_last || !self.registrations.pending().is_empty()
    }

    /// Removes the informer from the table, unless a handler was registered meanwhile.
    fn is_over(&self, shared: &Weak<Shared>) -> bool {
        let Some(shared) = shared.upgrade() else { return true };
        let mut running = shared.running();
        let is_over = self.registrations.pending().is_empty();
        if is_over {
            running.by_list_watch.remove(&self.list_watch);
        }
        is_over
    }

    /// One watch or one list, for the handler that is the furthest behind.
    async fn pass(&mut self, client: &Client, shared: &Weak<Shared>) -> Result<()> {
        let position = self.handlers.iter().map(|handler| handler.position).min().flatten();
        if position.is_some() {
            return self.watch(client, position).await;
        }
        let must_list = shared.upgrade().is_some_and(|shared| shared.must_list.load(Ordering::Relaxed));
        if must_list {
            return self.list(client).await;
        }
        match self.watch(client, None).await {
            // Kubernetes without WatchList answers 422, other servers 400; both have other reasons, too, which a list tells.
            Err(error) if [400, 422].contains(&error.code()) => {
                tracing::debug!(list_watch = %self.list_watch, "the server refuses sendInitialEvents; listing: {error}");
                self.list(client).await?;
                if let Some(shared) = shared.upgrade() {
                    shared.must_list.store(true, Ordering::Relaxed);
                }
                Ok(())
            }
            ended => ended,
        }
    }

    /// Passes the present objects to the handlers without a position, page by page.
    async fn list(&mut self, client: &Client) -> Result<()> {
        self.handle_initial(WatchEvent::Init);
        let mut request = PageRequest { limit: Some(PAGE), continue_token: None };
        loop {
            let answer = client.send(self.list_watch.list_request(&request)?).await?;
            if !answer.status().is_success() {
                let error = api_error(answer).await;
                if !error.is_expired() || request.continue_token.is_none() {
                    return Err(error);
                }
                // Later pages were compacted away. As client-go does, the list begins anew, in one piece, so that it comes to an end.
                tracing::debug!(list_watch = %self.list_watch, "continue token expired; listing without pages: {error}");
                request = PageRequest::default();
                self.handle_initial(WatchEvent::Init);
                continue;
            }
            let body = answer.into_body().collect_bytes().await?;
            self.has_received = true;
            let page = ListPage::split(&body)?;
            for item in &page.items {
                let key = key_of_item(item)?;
                self.handle_initial(WatchEvent::Apply(&key, &RawObject::of_item(item)));
            }
            self.drop_handlers();
            if self.handlers.is_empty() {
                return Ok(());
            }
            if page.metadata.continue_token.is_empty() {
                let version = parse(&page.metadata.resource_version)?;
                self.complete(version);
                return Ok(());
            }
            request.continue_token = Some(page.metadata.continue_token);
        }
    }

    /// One watch, to its end, or until there is a handler that needs more than it has.
    async fn watch(&mut self, client: &Client, position: Option<u64>) -> Result<()> {
        let answer = client.send(self.list_watch.watch_request(position)?).await?;
        if !answer.status().is_success() {
            return Err(api_error(answer).await);
        }
        let mut phase = if position.is_some() { Phase::Changes } else { Phase::Initial };
        if phase == Phase::Initial {
            self.handle_initial(WatchEvent::Init);
        }
        let (mut body, mut begun) = (answer.into_body(), Vec::new());
        while phase != Phase::Over {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.registrations.changed.notified() => {
                    self.drop_handlers();
                    // A handler that is registered while others get the present objects waits for the next request.
                    let is_over = phase == Phase::Changes && self.has_registration_changes();
                    if self.handlers.is_empty() || is_over {
                        return Ok(());
                    }
                    continue;
                }
            };
            let Some(frame) = frame else { return Ok(()) };
            let Ok(data) = frame.map_err(Error::other)?.into_data() else { continue };
            self.has_received = true;
            let mut rest = &data[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                if begun.is_empty() {
                    phase = self.line(&rest[..end], phase)?;
                } else {
                    begun.extend_from_slice(&rest[..end]);
                    phase = self.line(&std::mem::take(&mut begun), phase)?;
                }
                rest = &rest[end + 1..];
            }
            if begun.len() + rest.len() > LINE_BYTES_MAX {
                return Err(Error::other("a watch event is longer than any object"));
            }
            begun.extend_from_slice(rest);
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], phase: Phase) -> Result<Phase> {
        let Head { event, key, resource_version } = Head::of(line)?;
        let raw = RawObject::of_event(line);
        let event = match event {
            EventType::Added | EventType::Modified => WatchEvent::Apply(&key, &raw),
            EventType::Deleted => WatchEvent::Delete(&key, &raw),
            EventType::Bookmark => {
                return self.bookmark(parse(&resource_version)?, is_initial_end(line), phase);
            }
            EventType::Error => return Err(Error::Api(raw.parse::<Status>()?.boxed())),
        };
        self.has_news = true;
        // The present objects come in no order of versions: only behind all of them there is a position.
        if phase == Phase::Initial {
            self.handle_initial(event);
            return Ok(phase);
        }
        let position = Some(parse(&resource_version)?);
        for handler in self.handlers.iter_mut().filter(|handler| handler.position < position) {
            handler.handle(&self.list_watch, event);
            handler.position = position;
        }
        Ok(phase)
    }

    fn bookmark(&mut self, version: u64, is_initial_end: bool, phase: Phase) -> Result<Phase> {
        if phase != Phase::Initial {
            let behind = self.handlers.iter_mut().filter(|handler| handler.position < Some(version));
            behind.for_each(|handler| handler.position = Some(version));
            return Ok(phase);
        }
        if !is_initial_end {
            return Ok(phase);
        }
        self.complete(version);
        // Changes follow behind this version: handlers that are behind it need a request of their own.
        let is_behind = self.handlers.iter().any(|handler| handler.position < Some(version));
        Ok(if is_behind || self.has_registration_changes() { Phase::Over } else { Phase::Changes })
    }

    /// The present objects of a version have been received.
    fn complete(&mut self, version: u64) {
        self.has_news = true;
        self.handle_initial(WatchEvent::InitDone);
        let initial = self.handlers.iter_mut().filter(|handler| handler.position.is_none());
        initial.for_each(|handler| handler.position = Some(version));
    }

    /// Passes an event to the handlers that have not received the present objects.
    fn handle_initial(&mut self, event: WatchEvent<'_>) {
        for handler in self.handlers.iter_mut().filter(|handler| handler.position.is_none()) {
            handler.handle(&self.list_watch, event);
        }
    }
}

fn parse(version: &str) -> Result<u64> {
    version.parse().map_err(|_| Error::other(format!("a resource version is not a number: {version:?}")))
}

fn is_initial_end(bookmark: &[u8]) -> bool {
    bookmark.windows(INITIAL_EVENTS_END.len()).any(|window| window == INITIAL_EVENTS_END.as_bytes())
}
