//! The page loop: reads all objects of a resource page by page.

use model::{Resource, Selector};
use store::{ListQuery, Page, Position, Store, Stored};

/// Objects per page.
const PAGE: usize = 500;

/// The remaining pages of a list.
pub(crate) struct Pages {
    store: Store,
    query: ListQuery,
    /// Whether all pages have the revision of the first.
    are_pinned: bool,
    is_over: bool,
}

impl Pages {
    /// All objects of a resource, each page at its own revision.
    pub fn of(store: &Store, resource: Resource) -> Self {
        let selector = Selector::default();
        let query = ListQuery { resource, namespace: None, selector, at: None, after: None, limit: PAGE };
        Self { store: store.clone(), query, are_pinned: false, is_over: false }
    }

    /// All objects of a resource as of the first page's revision.
    pub fn all_at_once(store: &Store, resource: Resource) -> Self {
        Self { are_pinned: true, ..Self::of(store, resource) }
    }

    /// Limits the list to a namespace.
    pub fn within(mut self, namespace: &str) -> Self {
        self.query.namespace = Some(namespace.to_owned());
        self
    }

    /// Limits the list to a selector.
    pub fn selected(mut self, selector: Selector) -> Self {
        self.query.selector = selector;
        self
    }

    /// Starts after a position.
    pub fn after(mut self, position: Option<Position>) -> Self {
        self.query.after = position;
        self
    }

    /// The next page; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Page>, store::Error> {
        if self.is_over {
            return Ok(None);
        }
        let page = self.store.list(&self.query).await?;
        match page.items.last() {
            Some(last) if page.more => {
                let (namespace, name) = (last.key.namespace.clone(), last.key.name.clone());
                self.query.after = Some(Position { namespace, name });
                self.query.at = self.are_pinned.then_some(page.revision);
            }
            _ => self.is_over = true,
        }
        Ok(Some(page))
    }

    /// Whether there are no objects; reads at most one.
    pub async fn are_empty(mut self) -> Result<bool, store::Error> {
        self.query.limit = 1;
        Ok(self.next().await?.is_none_or(|page| page.items.is_empty()))
    }

    /// All remaining objects.
    pub async fn all(mut self) -> Result<Vec<Stored>, store::Error> {
        let mut all = Vec::new();
        while let Some(page) = self.next().await? {
            all.extend(page.items);
        }
        Ok(all)
    }

    /// The start of the next page; `None` after the last one.
    pub fn position(&self) -> Option<&Position> {
        self.query.after.as_ref().filter(|_| !self.is_over)
    }
}
