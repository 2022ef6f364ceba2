//! Tokens whose signature was checked before, so that it is not checked for each request.
//!
//! Nothing else of a token is believed without a look: neither its times nor what it is bound to. Keys that are replaced take what they
//! verified with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ring::digest::{SHA256, digest};

use super::claims::Claims;

/// Tokens of one generation. Of two generations the older one goes when the younger one is full.
const GENERATION: usize = 2048;

/// What stands for a token: nobody finds a token by it.
pub(super) type Print = [u8; 32];

/// The print of a token.
pub(super) fn print(token: &str) -> Print {
    digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// What the tokens say that were checked.
#[derive(Default)]
pub(super) struct Verified(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Print, Arc<Claims>>,
    old: HashMap<Print, Arc<Claims>>,
}

impl Verified {
    /// What a token says, if it was checked not long ago.
    pub fn get(&self, print: &Print) -> Option<Arc<Claims>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = known.young.get(print) {
            return Some(claims.clone());
        }
        let claims = known.old.remove(print)?;
        known.add(*print, claims.clone());
        Some(claims)
    }

    /// Remembers what a token says that was checked.
    pub fn add(&self, print: Print, claims: Arc<Claims>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(print, claims);
    }
}

impl Generations {
    fn add(&mut self, print: Print, claims: Arc<Claims>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(print, claims);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let known = Verified::default();
        let add = |name: &str| known.add(print(name), Arc::default());
        add("used");
        add("unused");
        for number in 0..3 * GENERATION {
            add(&number.to_string());
            assert!(known.get(&print("used")).is_some(), "{number}");
        }
        assert!(known.get(&print("unused")).is_none());
        let generations = known.0.lock().unwrap();
        assert!(generations.young.len() <= GENERATION && generations.old.len() <= GENERATION);
    }
}
