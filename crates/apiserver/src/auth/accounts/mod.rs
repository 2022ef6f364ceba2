//! Service accounts: the tokens that they get, and whom a token stands for.

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

/// The name of an issuer, and of an audience, where nobody chooses another.
const ISSUER: &str = "https://kubernetes.default.svc";

/// How tokens of service accounts are made and checked.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    /// Who issues tokens, as they say: the first one signs, all are trusted.
    pub issuers: Vec<String>,
    /// The names under which tokens are meant for this server.
    pub audiences: Vec<String>,
    /// The key that signs.
    pub signing: Current<SigningKey>,
    /// The keys that verify signatures; `None` for the public half of the one that signs.
    pub keys: Option<Current<Vec<PublicKey>>>,
    /// For how many seconds a token lives at most; `None` for any time.
    pub longest: Option<i64>,
    /// Whether tokens of pods for this server live longer than is asked for.
    pub extends: bool,
    /// Where others find the keys; without it at the address of the server.
    pub jwks_uri: Option<String>,
}

impl ServiceAccounts {
    /// One key signs, and its public half verifies.
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

    /// With a key that is forgotten with the server, and with it all tokens.
    ///
    /// # Errors
    /// No key can be made.
    pub fn ephemeral() -> Result<Self, Error> {
        let failed = |error| Error::internal(format!("no key can be made: {error}"));
        let pem = SigningKey::generate().map_err(failed)?;
        SigningKey::from_pem(pem.as_bytes()).map(|key| Self::new(Arc::new(key))).map_err(failed)
    }
}

/// The service accounts of a server.
pub(crate) struct Accounts {
    pub settings: ServiceAccounts,
    store: Store,
    last_uses: LastUseRecorder,
    /// Where the server is, for who asks for its keys.
    address: String,
    keyring: Mutex<Arc<Keyring>>,
}

/// The keys as they are now, with the tokens that they verified: a token is good no longer than its key.
pub(crate) struct Keyring {
    signing: Arc<SigningKey>,
    /// The keys of files that verify, if there are such files.
    given: Option<Arc<Vec<PublicKey>>>,
    signatures: SignatureCache,
}

impl Keyring {
    fn of(settings: &ServiceAccounts) -> Self {
        let given = settings.keys.as_ref().map(Current::get);
        Self { signing: settings.signing.get(), given, signatures: SignatureCache::default() }
    }

    /// Whether this still is what the settings say.
    fn is_current(&self, settings: &ServiceAccounts) -> bool {
        let given = match (&self.given, &settings.keys) {
            (Some(given), Some(keys)) => Arc::ptr_eq(given, &keys.get()),
            (given, keys) => given.is_none() && keys.is_none(),
        };
        given && Arc::ptr_eq(&self.signing, &settings.signing.get())
    }

    /// The keys that verify.
    fn verifying(&self) -> &[PublicKey] {
        self.given.as_ref().map_or(std::slice::from_ref(self.signing.public()), |given| given)
    }
}

impl Accounts {
    /// With what is to be taken down of the use of tokens.
    pub fn new(settings: ServiceAccounts, store: Store, address: String) -> (Self, TokenUses) {
        let (last_uses, uses) = LastUseRecorder::new();
        let keyring = Mutex::new(Arc::new(Keyring::of(&settings)));
        (Self { settings, store, last_uses, address, keyring }, uses)
    }

    /// The keys as they are now.
    fn keyring(&self) -> Arc<Keyring> {
        let mut keyring = self.keyring.lock().unwrap_or_else(PoisonError::into_inner);
        if !keyring.is_current(&self.settings) {
            *keyring = Arc::new(Keyring::of(&self.settings));
        }
        Arc::clone(&keyring)
    }
}

impl Identity {
    /// The service account of this name.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        Self::authenticated(format!("{PREFIX}{namespace}:{name}"), groups)
    }
}

const PREFIX: &str = "system:serviceaccount:";

/// Namespace and name of the service account that a user is, if they are one.
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
