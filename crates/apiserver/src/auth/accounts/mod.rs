//! Service accounts: issuing and verification of their tokens.

mod issue;
mod jwks;
mod jwt;
pub(crate) mod legacy_token_tracking;
mod signature_cache;
mod verify;

use std::sync::{Arc, Mutex, PoisonError};

use model::error::Error;
use process::reload::Current;
use process::signing::{PublicKey, SigningKey};
use store::Store;

pub(crate) use jwt::{Bound, Reference};

use super::Identity;
use legacy_token_tracking::{LastUseRecorder, TokenUses};
use signature_cache::SignatureCache;

/// The default issuer and audience.
const ISSUER: &str = "https://kubernetes.default.svc";

/// The settings of service account tokens.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    /// Accepted issuers; the first one signs.
    pub issuers: Vec<String>,
    /// The audiences of this server.
    pub audiences: Vec<String>,
    /// The signing key.
    pub signing: Current<SigningKey>,
    /// The verification keys; `None` for the public part of the signing key.
    pub keys: Option<Current<Vec<PublicKey>>>,
    /// The longest lifetime in seconds; `None` for no limit.
    pub longest: Option<i64>,
    /// Whether tokens of Pods for this server get an extended lifetime.
    pub extends: bool,
    /// The URI of the JWKS; by default that of this server.
    pub jwks_uri: Option<String>,
}

impl ServiceAccounts {
    /// Signs with one key and verifies with its public part.
    pub fn new(signing: impl Into<Current<SigningKey>>) -> Self {
        Self {
            issuers: vec![ISSUER.to_owned()],
            audiences: vec![ISSUER.to_owned()],
            keys: None,
            signing: signing.into(),
            longest: None,
            extends: true,
            jwks_uri: None,
        }
    }

    /// With an ephemeral key: tokens end with the server.
    ///
    /// # Errors
    /// The key cannot be generated.
    pub fn ephemeral() -> Result<Self, Error> {
        let failed = |error| Error::internal(format!("no key can be made: {error}"));
        let pem = SigningKey::generate().map_err(failed)?;
        SigningKey::from_pem(pem.as_bytes()).map(|key| Self::new(Arc::new(key))).map_err(failed)
    }
}

/// Issues and verifies the tokens of a server.
pub(crate) struct Accounts {
    pub settings: ServiceAccounts,
    store: Store,
    last_uses: LastUseRecorder,
    /// The address of the server, for the OIDC discovery document.
    address: String,
    keyring: Mutex<Arc<Keyring>>,
}

/// The current keys and the tokens that they verified: replacing a key drops its cached tokens.
pub(crate) struct Keyring {
    signing: Arc<SigningKey>,
    /// The verification keys from files, if configured.
    given: Option<Arc<Vec<PublicKey>>>,
    signatures: SignatureCache,
}

impl Keyring {
    fn of(settings: &ServiceAccounts) -> Self {
        let given = settings.keys.as_ref().map(Current::get);
        Self { signing: settings.signing.get(), given, signatures: SignatureCache::default() }
    }

    /// Whether the keys are the configured ones.
    fn is_current(&self, settings: &ServiceAccounts) -> bool {
        let given = match (&self.given, &settings.keys) {
            (Some(given), Some(keys)) => Arc::ptr_eq(given, &keys.get()),
            (given, keys) => given.is_none() && keys.is_none(),
        };
        given && Arc::ptr_eq(&self.signing, &settings.signing.get())
    }

    /// The verification keys.
    fn verifying(&self) -> &[PublicKey] {
        self.given.as_ref().map_or(std::slice::from_ref(self.signing.public()), |given| given)
    }
}

impl Accounts {
    /// Also returns the queue of token uses.
    pub fn new(settings: ServiceAccounts, store: Store, address: String) -> (Self, TokenUses) {
        let (last_uses, uses) = LastUseRecorder::new();
        let keyring = Mutex::new(Arc::new(Keyring::of(&settings)));
        (Self { settings, store, last_uses, address, keyring }, uses)
    }

    /// The current keys.
    fn keyring(&self) -> Arc<Keyring> {
        let mut keyring = self.keyring.lock().unwrap_or_else(PoisonError::into_inner);
        if !keyring.is_current(&self.settings) {
            *keyring = Arc::new(Keyring::of(&self.settings));
        }
        Arc::clone(&keyring)
    }
}

impl Identity {
    /// The identity of a service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        Self::authenticated(format!("{PREFIX}{namespace}:{name}"), groups)
    }
}

const PREFIX: &str = "system:serviceaccount:";

/// Namespace and name of the service account of a user name.
pub(crate) fn account_of(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(PREFIX)?.split_once(':')?;
    (is_label(namespace) && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
