//! Who may connect and who may do what, as the command line says it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use apiserver::auth::{Authentication, Mode, ProxyHeaders, ServiceAccounts, Trust, TrustedProxies};
use clap::{ArgAction, Args};
use process::{
    signing::{PublicKey, SigningKey},
    tls::ClientCaVerifier,
};
use rustls::pki_types::UnixTime;

const CONNECT: &str = "Who may connect";

/// What the API server takes about access, by the names that kube-apiserver has for it.
#[derive(Args, Debug)]
pub(crate) struct AccessArgs {
    /// Decide who may do what in these ways, in this order: RBAC, AlwaysAllow, AlwaysDeny
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "RBAC", help_heading = CONNECT)]
    pub(crate) authorization_mode: Vec<String>,

    /// Whether requests without credentials are those of the user system:anonymous, or refused
    ///
    /// They are refused in any case where --authorization-mode has AlwaysAllow, as in kube-apiserver.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = CONNECT)]
    pub(crate) anonymous_auth: bool,

    /// Check tokens of service accounts with the keys in this PEM file; may be given several times
    ///
    /// Without it they are checked with the key that signs them.
    #[arg(long, value_name = "FILE", help_heading = CONNECT)]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// Sign tokens of service accounts with this private key instead of DIR/pki/sa.key
    #[arg(long, value_name = "FILE", help_heading = CONNECT)]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,

    /// Issue tokens of service accounts under this name; those of further ones are trusted as well
    #[arg(long, value_name = "URL", help_heading = CONNECT)]
    pub(crate) service_account_issuer: Vec<String>,

    /// Let tokens of service accounts live for so many seconds at most
    #[arg(long, value_name = "SECONDS", help_heading = CONNECT)]
    pub(crate) service_account_max_token_expiration: Option<i64>,

    /// Whether tokens of pods live for a year, so that programs go on that never read them again
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = CONNECT)]
    pub(crate) service_account_extend_token_expiration: bool,

    /// Tell others to look for the keys of service accounts there, and not at the address of the server
    #[arg(long, value_name = "URL", help_heading = CONNECT)]
    pub(crate) service_account_jwks_uri: Option<String>,

    /// The audiences of tokens for this server [default: the issuers]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = CONNECT)]
    pub(crate) api_audiences: Vec<String>,

    /// Believe what proxies with a certificate of these authorities say of their callers
    #[arg(long, value_name = "FILE", help_heading = CONNECT)]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,

    /// Believe only proxies of these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = CONNECT)]
    pub(crate) requestheader_allowed_names: Vec<String>,

    /// Where proxies say the user name
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', help_heading = CONNECT)]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// Where proxies say the uid
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', help_heading = CONNECT)]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Where proxies say the groups
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', help_heading = CONNECT)]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// What the names of headers begin with in which proxies say more
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',', help_heading = CONNECT)]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

/// The same after it was understood.
#[derive(Debug)]
pub(crate) struct Access {
    modes: Vec<String>,
    anonymous: bool,
    signing: Option<Arc<SigningKey>>,
    keys: Vec<PublicKey>,
    issuers: Vec<String>,
    longest: Option<i64>,
    extends: bool,
    jwks_uri: Option<String>,
    audiences: Vec<String>,
    pub(crate) proxies: Option<Proxies>,
}

/// Proxies in front of the server.
#[derive(Clone, Debug)]
pub(crate) struct Proxies {
    pub(crate) authorities: ClientCaVerifier,
    /// The same as PEM.
    bundle: String,
    /// Empty for any.
    pub(crate) names: Vec<String>,
    headers: ProxyHeaders,
}

impl Access {
    /// Checks the arguments and reads the files that they name.
    pub(crate) fn new(args: AccessArgs) -> Result<Self> {
        if let Some(unknown) = args.authorization_mode.iter().find(|name| Mode::from_name(name).is_none()) {
            bail!(
                "--authorization-mode: there is no mode {unknown:?}; there are RBAC, AlwaysAllow and AlwaysDeny"
            );
        }
        let mut keys = Vec::new();
        for path in &args.service_account_key_file {
            let pem = read("--service-account-key-file", path)?;
            keys.extend(PublicKey::all_from_pem(&pem).with_context(|| unusable(path))?);
        }
        let signing = match &args.service_account_signing_key_file {
            None => None,
            Some(path) => {
                let pem = read("--service-account-signing-key-file", path)?;
                Some(Arc::new(SigningKey::from_pem(&pem).with_context(|| unusable(path))?))
            }
        };
        let proxies = match &args.requestheader_client_ca_file {
            None => None,
            Some(path) => {
                let bundle = read("--requestheader-client-ca-file", path)?;
                let authorities =
                    ClientCaVerifier::from_pem(&bundle, UnixTime::now()).with_context(|| unusable(path))?;
                let headers = ProxyHeaders {
                    users: args.requestheader_username_headers,
                    uids: args.requestheader_uid_headers,
                    groups: args.requestheader_group_headers,
                    extra_prefixes: args.requestheader_extra_headers_prefix,
                };
                let bundle = String::from_utf8_lossy(&bundle).into_owned();
                Some(Proxies { authorities, bundle, names: args.requestheader_allowed_names, headers })
            }
        };
        // Nobody is let in without a name where everybody may do everything.
        let everyone_may = args.authorization_mode.iter().any(|mode| mode == "AlwaysAllow");
        Ok(Self {
            modes: args.authorization_mode,
            anonymous: args.anonymous_auth && !everyone_may,
            signing,
            keys,
            issuers: args.service_account_issuer,
            longest: args.service_account_max_token_expiration,
            extends: args.service_account_extend_token_expiration,
            jwks_uri: args.service_account_jwks_uri,
            audiences: args.api_audiences,
            proxies,
        })
    }

    /// The ways to decide who may do what.
    pub(crate) fn modes(&self) -> Vec<Mode> {
        self.modes.iter().filter_map(|name| Mode::from_name(name)).collect()
    }

    /// What is said about connections, put to the ways that are there.
    pub(crate) fn complete(&self, authentication: Authentication) -> Authentication {
        let authentication = match &self.proxies {
            Some(proxies) => authentication.with_proxies(proxies.headers.clone()),
            None => authentication,
        };
        if self.anonymous { authentication } else { authentication.without_anonymous() }
    }

    /// What others may know of it, with the authorities of client certificates.
    pub(crate) fn trust(&self, clients: String) -> Trust {
        let proxies = self.proxies.as_ref().map(|Proxies { bundle, names, headers, .. }| TrustedProxies {
            authorities: bundle.clone(),
            names: names.clone(),
            headers: headers.clone(),
        });
        Trust { clients, proxies }
    }

    /// How tokens of service accounts are made; `own` gives the key of this server.
    pub(crate) fn service_accounts(
        &self,
        own: impl FnOnce() -> Result<SigningKey>,
    ) -> Result<ServiceAccounts> {
        let signing = self.signing.clone().map_or_else(|| own().map(Arc::new), Ok)?;
        let mut accounts = ServiceAccounts::new(signing);
        (accounts.longest, accounts.extends) = (self.longest, self.extends);
        accounts.jwks_uri.clone_from(&self.jwks_uri);
        if !self.keys.is_empty() {
            accounts.keys.clone_from(&self.keys);
        }
        if !self.issuers.is_empty() {
            accounts.issuers.clone_from(&self.issuers);
            accounts.audiences.clone_from(&self.issuers);
        }
        if !self.audiences.is_empty() {
            accounts.audiences.clone_from(&self.audiences);
        }
        Ok(accounts)
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}, which {flag} names", path.display()))
}

fn unusable(path: &Path) -> String {
    format!("{} cannot be used", path.display())
}
