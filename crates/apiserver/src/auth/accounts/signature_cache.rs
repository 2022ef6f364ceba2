//! Tokens whose signature was checked before, so that it is not checked for each request.
//!
//! Nothing else of a token is believed without a look: neither its times nor what it is bound to. Keys that are replaced take what they
//! verified with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ring::digest::SHA256;

use super::jwt::Claims;

/// Tokens of one generation. Of two generations the older one goes when the younger one is full.
const GENERATION: usize = 2048;

/// What stands for a token: nobody finds a token by it.
pub(super) type TokenDigest = [u8; 32];

/// The digest of a token.
pub(super) fn digest(token: &str) -> TokenDigest {
    ring::digest::digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// What the tokens say that were checked.
#[derive(Default)]
pub(super) struct SignatureCache(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<TokenDigest, Arc<Claims>>,
    old: HashMap<TokenDigest, Arc<Claims>>,
}

impl SignatureCache {
    /// What a token says, if it was checked not long ago.
    pub fn get(&self, digest: &TokenDigest) -> Option<Arc<Claims>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = known.young.get(digest) {
            return Some(claims.clone());
        }
        let claims = known.old.remove(digest)?;
        known.add(*digest, claims.clone());
        Some(claims)
    }

    /// Remembers what a token says that was checked.
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
