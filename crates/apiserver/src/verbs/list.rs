//! list: streams objects in constant memory, from pages of the same revision.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::Response;
use model::error::Error;
use model::{ObjectKey, Revision};
use store::{ListQuery, Page, Position, Store, Stored};

use super::continue_token::ContinueToken;
use super::selection::{Selection, selection};
use super::{Call, component_status, store_error, too_old};
use crate::body::{Aborted, Body};
use crate::crds::Catalog;
use crate::crds::selectable_fields::has_fields;
use crate::registry::Served;
use crate::render::ListFrame;
use crate::request::list_options::{ListOptions, VersionMatch};

/// Objects per page.
const CHUNK: usize = 500;

/// The size of a response chunk.
const PIECE: usize = 64 << 10;

pub async fn list(call: Call) -> Result<Response<Body>, Error> {
    let options = ListOptions::from_query(&call.query)?;
    if call.resource_type.is_component_status() {
        return component_status::list(&call).await;
    }
    let selection = selection(&call)?;
    has_fields(&call, &selection.selector).await?;
    let mut reader = Reader::open(&call, &selection, &options).await?;
    let first = reader.next().await?;
    let frame = ListFrame::new(&call);
    if !frame.streams() {
        let mut collected = frame.collect();
        collected.add(first.iter().map(|item| &item.value))?;
        while !reader.done() {
            collected.add(reader.next().await?.iter().map(|item| &item.value))?;
        }
        return collected.finish(&reader.metadata());
    }
    Ok(frame.response(Body::stream(stream(frame.clone(), reader, first))))
}

/// Streams a list while it is read. Its metadata comes last.
fn stream(
    frame: ListFrame,
    reader: Reader,
    first: Vec<Stored>,
) -> impl futures::Stream<Item = Result<Bytes, Aborted>> + Send {
    struct ListStream {
        frame: ListFrame,
        reader: Reader,
        /// Items that are read and not yet encoded.
        page: std::vec::IntoIter<Stored>,
        opened: bool,
        items: bool,
        closed: bool,
    }
    impl ListStream {
        /// The next chunk: a client that stops reading holds one of these and the rest of a page.
        async fn piece(&mut self) -> Result<Bytes, Error> {
            let mut out = BytesMut::with_capacity(PIECE);
            if !std::mem::replace(&mut self.opened, true) {
                out.extend_from_slice(&self.frame.opening());
            } else if self.page.as_slice().is_empty() && !self.reader.done() {
                self.page = self.reader.next().await?.into_iter();
            }
            while out.len() < PIECE
                && let Some(item) = self.page.next()
            {
                if std::mem::replace(&mut self.items, true) {
                    out.extend_from_slice(b",");
                }
                self.frame.write_item(&mut out, &item.value)?;
            }
            if self.page.as_slice().is_empty() && self.reader.done() {
                self.closed = true;
                out.extend_from_slice(&self.frame.closing(&self.reader.metadata()));
            }
            Ok(out.freeze())
        }
    }
    let page = first.into_iter();
    let state = ListStream { frame, reader, page, opened: false, items: false, closed: false };
    futures::stream::unfold(state, |mut state| async move {
        if state.closed {
            return None;
        }
        let piece = state.piece().await.map_err(|error| {
            tracing::warn!(%error, "list ended early");
            state.closed = true;
            Aborted
        });
        Some((piece, state))
    })
    .boxed()
}

/// The metadata of a list.
#[derive(Clone, Debug)]
pub struct ListMetadata {
    pub revision: Revision,
    pub continue_token: Option<String>,
    pub remaining: Option<u64>,
}

/// Reads a list page by page.
pub struct Reader {
    store: Store,
    resource_type: Arc<Served>,
    catalog: Option<Arc<Catalog>>,
    query: ListQuery,
    /// The only object, if the selection names it.
    lookup: Option<ObjectKey>,
    /// The remaining limit.
    wanted: Option<usize>,
    /// The total number of objects; unknown with a selector.
    left: Option<u64>,
    counts: bool,
    token: Option<ContinueToken>,
    revision: Option<Revision>,
    given: u64,
    more: bool,
    done: bool,
}

impl Reader {
    /// All selected objects at the newest revision, for the initial state of a watch.
    pub fn of_state(call: &Call, selection: &Selection) -> Self {
        Self {
            store: call.api.store.clone(),
            resource_type: call.resource_type.clone(),
            catalog: call.crd_catalog(),
            query: selection.query(call, CHUNK),
            lookup: selection.lookup(call),
            wanted: None,
            left: None,
            counts: false,
            token: None,
            revision: None,
            given: 0,
            more: false,
            done: false,
        }
    }

    pub async fn open(call: &Call, selection: &Selection, options: &ListOptions) -> Result<Self, Error> {
        let token = options.continue_token.as_deref().map(ContinueToken::decode).transpose()?;
        let given = call.query.text("resourceVersion");
        if token.is_some() && !given.is_empty() && given != "0" {
            let message = "specifying resource version is not allowed when using continue";
            return Err(Error::BadRequest { message: message.to_owned() });
        }
        let mut reader = Self::of_state(call, selection);
        reader.query.at = match (&token, options.version) {
            (Some(token), _) => token.revision(),
            (None, VersionMatch::Exact(revision)) => Some(revision),
            (None, VersionMatch::MostRecent) => None,
            (None, VersionMatch::NotOlderThan(requested)) => {
                check_reached(&call.api.store, requested).await?;
                None
            }
        };
        reader.query.after = token.as_ref().map(ContinueToken::position);
        reader.wanted = options.limit;
        reader.counts = options.limit.is_some() && !selection.selective;
        reader.left = token.as_ref().and_then(ContinueToken::left);
        reader.token = token;
        Ok(reader)
    }

    /// Whether all objects are read.
    pub fn done(&self) -> bool {
        self.done
    }

    /// The revision of the list; known after the first page.
    pub fn revision(&self) -> Revision {
        self.revision.unwrap_or(Revision::ZERO)
    }

    /// The next objects, in key order.
    pub async fn next(&mut self) -> Result<Vec<Stored>, Error> {
        let items = self.next_stored().await?;
        self.show(items).await
    }

    /// Like [`Reader::next`], in the stored form.
    pub async fn next_stored(&mut self) -> Result<Vec<Stored>, Error> {
        if let Some(key) = self.lookup.clone() {
            return self.only(&key).await;
        }
        self.query.limit = self.wanted.map_or(CHUNK, |wanted| wanted.min(CHUNK));
        let page = self.store.list(&self.query).await.map_err(|error| self.explain(error))?;
        let Page { revision, items, more, total } = page;
        if self.revision.is_none() && self.token.is_none() {
            self.left = total;
        }
        // All further pages have the revision of the first.
        self.revision = Some(revision);
        self.query.at = Some(revision);
        self.given += items.len() as u64;
        self.wanted = self.wanted.map(|wanted| wanted.saturating_sub(items.len()));
        if let Some(last) = items.last() {
            self.query.after =
                Some(Position { namespace: last.key.namespace.clone(), name: last.key.name.clone() });
        }
        self.more = more;
        self.done = !more || self.wanted == Some(0);
        Ok(items)
    }

    /// Reads the only object of the selection.
    async fn only(&mut self, key: &ObjectKey) -> Result<Vec<Stored>, Error> {
        self.done = true;
        let at = match self.query.at {
            Some(at) => at,
            None => self.store.clock().await.map_err(store_error)?.current,
        };
        self.revision = Some(at);
        let found = self.store.get(key, Some(at)).await.map_err(|error| self.explain(error))?;
        Ok(found.into_iter().collect())
    }

    async fn show(&self, items: Vec<Stored>) -> Result<Vec<Stored>, Error> {
        if let Some(catalog) = &self.catalog {
            catalog.wait_for_all(items.iter().map(|item| item.revision)).await;
        }
        self.resource_type.all_of_version(items).await
    }

    /// The metadata of the list, after all objects are read.
    pub fn metadata(&self) -> ListMetadata {
        let remaining = self.left.filter(|_| self.counts).map(|left| left.saturating_sub(self.given));
        let continue_token = self.query.after.clone().filter(|_| self.more).map(|position| {
            let revision = Some(self.revision()).filter(|_| !self.resumed());
            ContinueToken::new(revision, position, remaining).encode()
        });
        let remaining = remaining.filter(|_| continue_token.is_some());
        ListMetadata { revision: self.revision(), continue_token, remaining }
    }

    /// Whether the list continues in the newest state because its revision expired.
    fn resumed(&self) -> bool {
        self.token.as_ref().is_some_and(|token| token.revision().is_none())
    }

    fn explain(&self, error: store::Error) -> Error {
        match (error, &self.token) {
            (store::Error::Expired { .. }, Some(token)) => Error::Expired {
                message: EXPIRED_TOKEN.to_owned(),
                continue_token: Some(token.inconsistent().encode()),
            },
            (store::Error::Expired { requested, .. }, None) => {
                Error::Expired { message: too_old(requested), continue_token: None }
            }
            (error, _) => store_error(error),
        }
    }
}

const EXPIRED_TOKEN: &str = "The provided continue parameter is too old to display a consistent list result. \
You can start a new list without the continue parameter, or use the continue token in this response to retrieve \
the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that \
were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Refuses a revision that the store has not reached.
pub async fn check_reached(store: &Store, requested: Revision) -> Result<(), Error> {
    if requested == Revision::ZERO {
        return Ok(());
    }
    let current = store.clock().await.map_err(store_error)?.current;
    if requested > current { Err(Error::FutureRevision { requested, current }) } else { Ok(()) }
}
