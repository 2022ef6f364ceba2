//! All objects of a resource, page by page.

use model::{Resource, Selector};
use store::{ListQuery, Page, Position, Store, Stored};

/// Objects read at once.
const PAGE: usize = 500;

/// What is still to be read of a list.
pub(crate) struct Pages {
    store: Store,
    query: ListQuery,
    /// Whether all pages show the state of the first.
    are_pinned: bool,
    is_over: bool,
}

impl Pages {
    /// All objects of a resource, each as it is when its page is read.
    pub fn of(store: &Store, resource: Resource) -> Self {
        let selector = Selector::default();
        let query = ListQuery { resource, namespace: None, selector, at: None, after: None, limit: PAGE };
        Self { store: store.clone(), query, are_pinned: false, is_over: false }
    }

    /// All objects of a resource, all as of the first page.
    pub fn all_at_once(store: &Store, resource: Resource) -> Self {
        Self { are_pinned: true, ..Self::of(store, resource) }
    }

    /// Only those of this namespace.
    pub fn within(mut self, namespace: &str) -> Self {
        self.query.namespace = Some(namespace.to_owned());
        self
    }

    /// Only those that a selector selects.
    pub fn selected(mut self, selector: Selector) -> Self {
        self.query.selector = selector;
        self
    }

    /// Only those behind this place.
    pub fn after(mut self, position: Option<Position>) -> Self {
        self.query.after = position;
        self
    }

    /// The next page; nothing behind the last one.
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

    /// Whether there is nothing to read; one object answers that.
    pub async fn are_empty(mut self) -> Result<bool, store::Error> {
        self.query.limit = 1;
        Ok(self.next().await?.is_none_or(|page| page.items.is_empty()))
    }

    /// All objects that are left to read.
    pub async fn all(mut self) -> Result<Vec<Stored>, store::Error> {
        let mut all = Vec::new();
        while let Some(page) = self.next().await? {
            all.extend(page.items);
        }
        Ok(all)
    }

    /// Where the next page begins; `None` behind the last one.
    pub fn position(&self) -> Option<&Position> {
        self.query.after.as_ref().filter(|_| !self.is_over)
    }
}
