//! Documents that were asked for lately, so that they are not made again for everybody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::registry::Registry;

/// All documents that are kept have so many bytes at most.
const MOST: usize = 4 << 20;
/// A larger document is made each time: nearly nobody asks for it.
const LARGEST: usize = 1 << 20;

/// Documents by what they are made of: one that changes is another one, and the old one goes when others are asked for.
#[derive(Default)]
pub(crate) struct Documents(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The one that was asked for last comes first.
    documents: VecDeque<(String, Bytes)>,
    bytes: usize,
    /// Where the documents of a registry are.
    index: Option<(Weak<Registry>, Bytes)>,
}

impl Documents {
    /// The document of this tag.
    pub fn of(&self, tag: &str, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        if let Some(document) = self.lock(|kept| kept.find(tag)) {
            return document;
        }
        let document = Bytes::from(make());
        self.lock(|kept| kept.keep(tag, &document));
        document
    }

    /// The index of a registry.
    pub fn index(&self, registry: &Arc<Registry>, make: impl FnOnce() -> String) -> Bytes {
        let is_of = |(of, _): &&(Weak<Registry>, Bytes)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(registry));
        if let Some((_, index)) = self.lock(|kept| kept.index.as_ref().filter(is_of).cloned()) {
            return index;
        }
        let index = Bytes::from(make());
        self.lock(|kept| kept.index = Some((Arc::downgrade(registry), index.clone())));
        index
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn find(&mut self, tag: &str) -> Option<Bytes> {
        let at = self.documents.iter().position(|(known, _)| known == tag)?;
        let found = self.documents.remove(at)?;
        let document = found.1.clone();
        self.documents.push_front(found);
        Some(document)
    }

    fn keep(&mut self, tag: &str, document: &Bytes) {
        if document.len() > LARGEST || self.documents.iter().any(|(known, _)| known == tag) {
            return;
        }
        self.bytes += document.len();
        self.documents.push_front((tag.to_owned(), document.clone()));
        while self.bytes > MOST {
            let Some((_, last)) = self.documents.pop_back() else { return };
            self.bytes -= last.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_lately_is_kept_within_bounds() {
        let documents = Documents::default();
        let fresh = || vec![0; LARGEST];
        for tag in ["a", "b", "c", "d"] {
            documents.of(tag, fresh);
        }
        documents.of("a", || unreachable!("it is kept"));
        documents.of("e", fresh);
        documents.of("a", || unreachable!("it was asked for after b"));
        assert_eq!(documents.of("b", || vec![1]).len(), 1);
        documents.of("large", || vec![0; LARGEST + 1]);
        assert_eq!(documents.of("large", || vec![1]).len(), 1);
        assert!(documents.0.lock().unwrap().bytes <= MOST);
    }

    #[test]
    fn an_index_is_that_of_its_registry() {
        let documents = Documents::default();
        let [one, other] = [(); 2].map(|()| Arc::new(Registry::default()));
        assert_eq!(documents.index(&one, || "one".to_owned()), "one");
        assert_eq!(documents.index(&one, || unreachable!("it is kept")), "one");
        assert_eq!(documents.index(&other, || "other".to_owned()), "other");
    }
}
