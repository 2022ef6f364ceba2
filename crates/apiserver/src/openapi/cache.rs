//! The cache of OpenAPI documents.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::registry::Registry;

/// The size limit of the cache in bytes.
const CACHE_BYTES: usize = 8 << 20;
/// Larger documents are not cached.
const DOCUMENT_BYTES: usize = 4 << 20;

/// OpenAPI documents by their tag. A changed document has another tag; old ones are evicted.
#[derive(Default)]
pub(crate) struct DocumentCache {
    kept: Mutex<CacheState>,
    /// Held while a document is built, so that concurrent requests build it once. Waiters block their own threads.
    making: Mutex<()>,
}

/// The tag of a document and its media type.
type CacheKey = (String, &'static str);

#[derive(Default)]
struct CacheState {
    /// Most recently used first.
    documents: VecDeque<(CacheKey, Bytes)>,
    bytes: usize,
    /// The index of group versions, for one registry.
    index: Option<(Weak<Registry>, Bytes)>,
}

impl DocumentCache {
    /// The document of a tag and media type; built if it is not cached.
    pub fn of(&self, tag: &str, media_type: &'static str, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let name = (tag.to_owned(), media_type);
        if let Some(document) = self.lock(|kept| kept.find(&name)) {
            return document;
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have built it meanwhile.
        if let Some(document) = self.lock(|kept| kept.find(&name)) {
            return document;
        }
        let document = Bytes::from(make());
        self.lock(|kept| kept.keep(name, &document));
        document
    }

    /// The index of a registry; built if it is not cached.
    pub fn index(&self, registry: &Arc<Registry>, make: impl FnOnce() -> String) -> Bytes {
        let is_of = |(of, _): &&(Weak<Registry>, Bytes)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(registry));
        if let Some((_, index)) = self.lock(|kept| kept.index.as_ref().filter(is_of).cloned()) {
            return index;
        }
        let index = Bytes::from(make());
        self.lock(|kept| kept.index = Some((Arc::downgrade(registry), index.clone())));
        index
    }

    fn lock<T>(&self, act: impl FnOnce(&mut CacheState) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CacheState {
    fn find(&mut self, name: &CacheKey) -> Option<Bytes> {
        let at = self.documents.iter().position(|(known, _)| known == name)?;
        let found = self.documents.remove(at)?;
        let document = found.1.clone();
        self.documents.push_front(found);
        Some(document)
    }

    fn keep(&mut self, name: CacheKey, document: &Bytes) {
        if document.len() > DOCUMENT_BYTES {
            return;
        }
        self.bytes += document.len();
        self.documents.push_front((name, document.clone()));
        while self.bytes > CACHE_BYTES {
            let Some((_, last)) = self.documents.pop_back() else { return };
            self.bytes -= last.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;

    const JSON: &str = "application/json";

    #[test]
    fn the_cache_keeps_recent_documents_within_its_bounds() {
        let documents = DocumentCache::default();
        let half = || vec![0; DOCUMENT_BYTES];
        documents.of("a", JSON, half);
        documents.of("b", JSON, half);
        documents.of("a", JSON, || unreachable!("it is kept"));
        documents.of("c", JSON, half);
        documents.of("a", JSON, || unreachable!("it was asked for after b"));
        assert_eq!(documents.of("a", "another/form", || vec![1]).len(), 1);
        assert_eq!(documents.of("b", JSON, || vec![1]).len(), 1);
        documents.of("large", JSON, || vec![0; DOCUMENT_BYTES + 1]);
        assert_eq!(documents.of("large", JSON, || vec![1]).len(), 1);
        assert!(documents.kept.lock().unwrap().bytes <= CACHE_BYTES);
    }

    #[test]
    fn concurrent_requests_for_a_document_build_it_once() {
        let documents = DocumentCache::default();
        let made = AtomicUsize::new(0);
        let together = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    documents.of("a", JSON, || vec![u8::try_from(made.fetch_add(1, Relaxed)).unwrap()])
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn an_index_is_that_of_its_registry() {
        let documents = DocumentCache::default();
        let [one, other] = [(); 2].map(|()| Arc::new(Registry::default()));
        assert_eq!(documents.index(&one, || "one".to_owned()), "one");
        assert_eq!(documents.index(&one, || unreachable!("it is kept")), "one");
        assert_eq!(documents.index(&other, || "other".to_owned()), "other");
    }
}
