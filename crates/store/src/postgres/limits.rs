//! Texts that PostgreSQL can store and index: without a zero byte, and not longer than a third of a page.
//!
//! One text that it refuses would fail the whole batch, with the writes of other callers, so it is refused
//! before.

use model::ObjectKey;

use crate::engine::Transaction;
use crate::types::{Error, Write};

/// An index row takes 2704 bytes at most, and has three texts of any length.
const TEXT_MAX: usize = 512;

/// Whether PostgreSQL can hold a key. Every name that Kubernetes allows is.
pub fn is_storable(key: &ObjectKey) -> bool {
    [key.resource.as_str(), &key.namespace, &key.name].into_iter().all(fits)
}

/// The part before a zero byte, which PostgreSQL can compare: no stored key lies between the two.
pub fn comparable(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

/// Whether PostgreSQL accepts it as text.
pub fn is_text(text: &str) -> bool {
    !text.contains('\0')
}

/// Takes the transactions out of a batch that PostgreSQL could not store; returns their indexes and errors.
pub fn set_aside(batch: &mut [Transaction]) -> Vec<(usize, Error)> {
    let mut refused = Vec::new();
    for (place, writes) in batch.iter_mut().enumerate() {
        if let Some(write) = writes.iter().find(|write| !is_write_storable(write)) {
            refused.push((place, refusal(write)));
            writes.clear();
        }
    }
    refused
}

fn refusal(write: &Write) -> Error {
    let key = write.key();
    if let Write::Require { .. } = write {
        return Error::NotFound { key: key.clone() };
    }
    let reason = format!("PostgreSQL cannot store {key:?}: a name is too long or holds a zero byte");
    Error::Unavailable { reason }
}

fn is_write_storable(write: &Write) -> bool {
    let uid = match write {
        Write::Create { uid, .. } => uid.0.as_str(),
        Write::Update { .. } | Write::Delete { .. } | Write::Require { .. } => "",
    };
    is_storable(write.key()) && is_text(uid)
}

fn fits(text: &str) -> bool {
    text.len() <= TEXT_MAX && is_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_that_postgres_accepts_are_keys() {
        let resource = model::Resource::new("", "pods");
        assert!(is_storable(&ObjectKey::new(&resource, "ns", "name")));
        assert!(!is_storable(&ObjectKey::new(&resource, "ns", "a\0b")));
        assert!(!is_storable(&ObjectKey::new(&resource, &"n".repeat(TEXT_MAX + 1), "name")));
        assert_eq!(comparable("ab\0c"), "ab");
    }
}
