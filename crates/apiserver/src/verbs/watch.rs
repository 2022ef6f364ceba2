//! watch: streams the initial state if requested, then every change.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use model::Revision;
use model::error::Error;
use process::Shutdown;
use store::{Store, Stored, Watch, WatchScope};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};

use super::list::{Reader, check_reached};
use super::selection::selection;
use super::{Call, store_error, too_old};
use crate::body::{Aborted, Body, Ends};
use crate::crds::Catalog;
use crate::crds::selectable_fields::has_fields;
use crate::gate::Slot;
use crate::limits::random_fraction;
use crate::metrics::Counted;
use crate::render::{EventFrame, EventName};
use crate::request::list_options::{WatchOptions, WatchStart};

/// The interval of bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// The upper bound of `timeoutSeconds`.
const LONGEST: Duration = Duration::from_secs(86_400);
/// The time to deliver the last events of a deleted CRD.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(1);
/// The size of a response chunk.
const PIECE: usize = 64 << 10;

pub async fn watch(call: Call) -> Result<Response<Body>, Error> {
    let options = WatchOptions::from_query(&call.query)?;
    let selection = selection(&call)?;
    has_fields(&call, &selection.selector).await?;
    let resource = call.resource_type.resource.clone();
    let (namespace, name) = (selection.namespace.clone(), selection.name.clone());
    let watch_scope = WatchScope { resource, namespace, name, selector: selection.selector.clone() };
    let store = call.api.store.clone();
    let phase = match options.start {
        WatchStart::State(fresh) => {
            check_reached(&store, fresh).await?;
            let slot = call.api.gate.enter_initial_state(&call.caller.name, call.level).await?;
            let reader = Reader::of_state(&call, &selection);
            let state = InitialState { reader, page: Vec::new().into_iter(), _slot: slot };
            WatchPhase::State(Box::new(state), watch_scope)
        }
        WatchStart::After(revision) => WatchPhase::Live(begin(&store, watch_scope, revision).await?),
        WatchStart::Now => {
            let now = store.clock().await.map_err(store_error)?.current;
            WatchPhase::Live(begin(&store, watch_scope, now).await?)
        }
    };
    let frame = EventFrame::new(&call)?;
    let content_type = frame.content_type();
    let feed = Feed::new(&call, phase, frame, &options);
    let ends = Ends(feed.end);
    let events = futures::stream::unfold(feed, |mut feed| async move {
        feed.next().await.map(|piece| (Ok::<_, Aborted>(piece), feed))
    });
    Ok(Response::builder()
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::CACHE_CONTROL, "no-cache, private")
        .extension(ends)
        .body(Body::stream(events.boxed()))
        .expect("the headers are constants"))
}

async fn begin(store: &Store, scope: WatchScope, from: Revision) -> Result<Watch, Error> {
    store.watch(scope, from).await.map_err(|error| match error {
        store::Error::Expired { requested, .. } => {
            Error::Expired { message: too_old(requested), continue_token: None }
        }
        error => store_error(error),
    })
}

/// The phase of a watch.
enum WatchPhase {
    /// Sends the initial state as ADDED events.
    State(Box<InitialState>, WatchScope),
    /// Sends changes.
    Live(Watch),
    /// Has sent its last event.
    Over,
}

/// The remaining objects of the initial state.
struct InitialState {
    reader: Reader,
    page: std::vec::IntoIter<Stored>,
    /// Released with the last object.
    _slot: Slot,
}

/// The stream of one watch.
struct Feed {
    store: Store,
    phase: WatchPhase,
    /// Events that are read and not yet sent: few, because the store returns small batches.
    pending: std::vec::IntoIter<store::Event>,
    frame: EventFrame,
    bookmarks: Option<Interval>,
    end: Instant,
    shutdown: Shutdown,
    catalog: Option<Arc<Catalog>>,
    /// Cancelled when the CRD is changed or deleted.
    crd_changed: Shutdown,
    /// Cancelled before `crd_changed` if the CRD is deleted.
    gone: Shutdown,
    _counted: Counted,
}

/// The reason why a live watch continues.
enum WakeReason {
    Events(Result<Vec<store::Event>, store::Error>),
    Bookmark,
    CrdChanged,
    End,
}

impl Feed {
    fn new(call: &Call, phase: WatchPhase, frame: EventFrame, options: &WatchOptions) -> Self {
        let usual = call.api.limits.watch_time;
        let time = options
            .timeout_seconds
            .map_or_else(|| usual.mul_f64(1.0 + random_fraction()), Duration::from_secs);
        let now = Instant::now();
        let versions = call.resource_type.custom.as_ref().map(|view| &view.versions);
        let bookmarks = options.bookmarks.then(|| {
            let mut interval = interval_at(now + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Self {
            store: call.api.store.clone(),
            phase,
            pending: Vec::new().into_iter(),
            frame,
            bookmarks,
            end: now + time.min(LONGEST),
            shutdown: call.api.shutdown.clone(),
            catalog: call.crd_catalog(),
            crd_changed: versions.map(|versions| versions.changed.clone()).unwrap_or_default(),
            gone: versions.map(|versions| versions.deleted.clone()).unwrap_or_default(),
            _counted: Counted::new(&call.api.metrics.watches),
        }
    }

    /// The next chunk; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = match &mut self.phase {
                WatchPhase::Over => return None,
                WatchPhase::State(..) => self.state().await,
                WatchPhase::Live(_) => self.live().await,
            };
            match piece {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Some(piece),
                Err(error) => {
                    self.phase = WatchPhase::Over;
                    return Some(self.frame.error(&error));
                }
            }
        }
    }

    /// The next chunk of the initial state; after the last one the bookmark that ends it.
    async fn state(&mut self) -> Result<Bytes, Error> {
        let WatchPhase::State(state, scope) = &mut self.phase else { return Ok(Bytes::new()) };
        let InitialState { reader, page, .. } = &mut **state;
        if page.as_slice().is_empty() {
            *page = reader.next().await?.into_iter();
        }
        let mut out = Vec::new();
        while out.len() < PIECE
            && let Some(item) = page.next()
        {
            self.frame.write_stored(&mut out, EventName::Added, &item.value)?;
        }
        if reader.done() && page.as_slice().is_empty() {
            let revision = reader.revision();
            let watch = begin(&self.store, scope.clone(), revision).await?;
            self.phase = WatchPhase::Live(watch);
            if self.bookmarks.is_some() {
                self.frame.write_bookmark(&mut out, revision, true)?;
            }
        }
        Ok(out.into())
    }

    /// The next events, a bookmark, or the end.
    async fn live(&mut self) -> Result<Bytes, Error> {
        if !self.pending.as_slice().is_empty() {
            return self.piece().await;
        }
        let WatchPhase::Live(watch) = &mut self.phase else { return Ok(Bytes::new()) };
        let tick = async {
            match &mut self.bookmarks {
                Some(interval) => {
                    interval.tick().await;
                }
                None => std::future::pending().await,
            }
        };
        let wake = tokio::select! {
            biased;
            () = self.shutdown.requested() => WakeReason::End,
            () = self.crd_changed.requested() => WakeReason::CrdChanged,
            () = tokio::time::sleep_until(self.end) => WakeReason::End,
            events = watch.next() => WakeReason::Events(events),
            () = tick => WakeReason::Bookmark,
        };
        let position = watch.position();
        match wake {
            WakeReason::Events(events) => self.events(events).await,
            WakeReason::Bookmark => self.bookmark(position),
            // The events cannot be requested later: the resource is gone.
            WakeReason::CrdChanged if self.gone.is_requested() && !watch.has_seen_all() => {
                match timeout(LAST_EVENTS_TIMEOUT, watch.next()).await {
                    Ok(events) => self.events(events).await,
                    Err(_) => self.over(position),
                }
            }
            WakeReason::CrdChanged | WakeReason::End => self.over(position),
        }
    }

    fn over(&mut self, position: Revision) -> Result<Bytes, Error> {
        self.phase = WatchPhase::Over;
        if self.bookmarks.is_some() { self.bookmark(position) } else { Ok(Bytes::new()) }
    }

    async fn events(&mut self, events: Result<Vec<store::Event>, store::Error>) -> Result<Bytes, Error> {
        let events = events.map_err(|error| match error {
            store::Error::Expired { requested, compacted } => Error::Expired {
                message: format!("too old resource version: {requested} ({compacted})"),
                continue_token: None,
            },
            error => store_error(error),
        })?;
        if let Some(catalog) = &self.catalog {
            catalog.wait_for_all(events.iter().map(|event| event.change.revision)).await;
        }
        self.pending = events.into_iter();
        self.piece().await
    }

    /// The next pending events, in one chunk of bounded size.
    async fn piece(&mut self) -> Result<Bytes, Error> {
        if self.shutdown.is_requested() || Instant::now() >= self.end {
            // No bookmark: it would claim events that were not sent.
            self.phase = WatchPhase::Over;
            return Ok(Bytes::new());
        }
        let Some(event) = self.pending.next() else { return Ok(Bytes::new()) };
        let first = self.frame.shared(&event).await?;
        // Most events come alone and need no copy.
        if self.pending.as_slice().is_empty() || first.len() >= PIECE {
            return Ok(first);
        }
        let mut out = Vec::with_capacity(PIECE);
        out.extend_from_slice(&first);
        while out.len() < PIECE
            && let Some(event) = self.pending.next()
        {
            out.extend_from_slice(&self.frame.shared(&event).await?);
        }
        Ok(out.into())
    }

    fn bookmark(&mut self, position: Revision) -> Result<Bytes, Error> {
        let mut out = Vec::new();
        self.frame.write_bookmark(&mut out, position, false)?;
        Ok(out.into())
    }
}
