//! A cache of verified token signatures.
//!
//! Lifetimes and bound objects are checked for each request. Replacing the keys drops the cache.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ring::digest::SHA256;

use super::jwt::Claims;

/// Tokens of a generation. When the younger generation is full, the older one is dropped.
const GENERATION: usize = 2048;

/// A digest that does not reveal the token.
pub(super) type TokenDigest = [u8; 32];

/// The digest of a token.
pub(super) fn digest(token: &str) -> TokenDigest {
    ring::digest::digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The claims of verified tokens.
#[derive(Default)]
pub(super) struct SignatureCache(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<TokenDigest, Arc<Claims>>,
    old: HashMap<TokenDigest, Arc<Claims>>,
}

impl SignatureCache {
    /// The claims of a token that was verified recently.
    pub fn get(&self, digest: &TokenDigest) -> Option<Arc<Claims>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = known.young.get(digest) {
            return Some(claims.clone());
        }
        let claims = known.old.remove(digest)?;
        known.add(*digest, claims.clone());
        Some(claims)
    }

    /// Adds the claims of a verified token.
    pub fn add(&self, digest: TokenDigest, claims: Arc<Claims>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(digest, claims);
    }
}

impl Generations {
    fn add(&mut self, digest: TokenDigest, claims: Arc<Claims>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, claims);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_tokens_stay_in_the_cache_and_others_are_evicted() {
        let known = SignatureCache::default();
        let add = |name: &str| known.add(digest(name), Arc::default());
        add("used");
        add("unused");
        for number in 0..3 * GENERATION {
            add(&number.to_string());
            assert!(known.get(&digest("used")).is_some(), "{number}");
        }
        assert!(known.get(&digest("unused")).is_none());
        let generations = known.0.lock().unwrap();
        assert!(generations.young.len() <= GENERATION && generations.old.len() <= GENERATION);
    }
}
