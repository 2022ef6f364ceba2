//! Who may connect and who may do what, as the command line says it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use apiserver::auth::{
    Authentication, ClusterAuthenticationInfo, Mode, ProxyHeaders, RequestHeaderInfo, ServiceAccounts,
};
use clap::{ArgAction, Args};
use process::{
    reload::{Content, Current, NamedFile, Reloader, Updater},
    signing::{PublicKey, SigningKey},
};

use crate::trust::{Trusted, watch_bundle};

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
    signing: Option<Current<SigningKey>>,
    keys: Option<Current<Vec<PublicKey>>>,
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
    /// Empty for any.
    pub(crate) names: Vec<String>,
    headers: ProxyHeaders,
}

impl Access {
    /// Checks the arguments, and follows the files that they name.
    pub(crate) fn new(args: AccessArgs, files: &mut Reloader, trust: &Updater<Trusted>) -> Result<Self> {
        if let Some(unknown) = args.authorization_mode.iter().find(|name| Mode::from_name(name).is_none()) {
            bail!(
                "--authorization-mode: there is no mode {unknown:?}; there are RBAC, AlwaysAllow and AlwaysDeny"
            );
        }
        let keys = args.service_account_key_file.into_iter();
        let keys: Vec<_> = keys.map(|path| NamedFile { flag: "--service-account-key-file", path }).collect();
        let keys = if keys.is_empty() { None } else { Some(follow_keys(files, keys)?) };
        let signing = args.service_account_signing_key_file;
        let signing = signing.map(|path| follow_signing_key(files, path)).transpose()?;
        let proxies = match args.requestheader_client_ca_file {
            None => None,
            Some(path) => {
                let file = NamedFile { flag: "--requestheader-client-ca-file", path };
                watch_bundle(files, file, trust, |trusted| &mut trusted.proxies)?;
                let headers = ProxyHeaders {
                    users: args.requestheader_username_headers,
                    uids: args.requestheader_uid_headers,
                    groups: args.requestheader_group_headers,
                    extra_prefixes: args.requestheader_extra_headers_prefix,
                };
                Some(Proxies { names: args.requestheader_allowed_names, headers })
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

    /// The names of front proxies, where there are such.
    pub(crate) fn proxy_names(&self) -> Option<Vec<String>> {
        self.proxies.as_ref().map(|proxies| proxies.names.clone())
    }

    /// The trusted CAs as extension API servers are told of them.
    pub(crate) fn publisher(&self) -> impl Fn(&Trusted) -> ClusterAuthenticationInfo + Send + use<> {
        let proxies = self.proxies.clone();
        move |trusted| {
            let proxies = proxies.clone().map(|Proxies { names, headers }| RequestHeaderInfo {
                ca: trusted.proxies.pem.clone(),
                allowed_names: names,
                headers,
            });
            ClusterAuthenticationInfo { client_ca: trusted.client_pem(), request_header: proxies }
        }
    }

    /// How tokens of service accounts are made; `own` gives the key of this server.
    pub(crate) fn service_accounts(
        &self,
        own: impl FnOnce() -> Result<Current<SigningKey>>,
    ) -> Result<ServiceAccounts> {
        let signing = self.signing.clone().map_or_else(own, Ok)?;
        let mut accounts = ServiceAccounts::new(signing);
        accounts.keys.clone_from(&self.keys);
        (accounts.longest, accounts.extends) = (self.longest, self.extends);
        accounts.jwks_uri.clone_from(&self.jwks_uri);
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

/// Follows the keys that verify tokens of service accounts.
fn follow_keys(files: &mut Reloader, paths: Vec<NamedFile>) -> Result<Current<Vec<PublicKey>>> {
    let parse = |contents: &[Content]| {
        let mut keys = Vec::new();
        for Content { path, bytes } in contents {
            let found = PublicKey::all_from_pem(bytes);
            keys.extend(found.map_err(|error| format!("{}: {error}", unusable(path)))?);
        }
        Ok::<_, String>(keys)
    };
    Ok(files.follow("service-account-key-file", paths, parse)?)
}

/// Follows the key that signs tokens of service accounts.
pub(crate) fn follow_signing_key(files: &mut Reloader, path: PathBuf) -> Result<Current<SigningKey>> {
    let file = NamedFile { flag: "--service-account-signing-key-file", path };
    let parse = |contents: &[Content]| {
        let [Content { path, bytes }] = contents else { return Err("there is one signing key".to_owned()) };
        SigningKey::from_pem(bytes).map_err(|error| format!("{}: {error}", unusable(path)))
    };
    Ok(files.follow("service-account-signing-key-file", vec![file], parse)?)
}

pub(crate) fn unusable(path: &Path) -> String {
    format!("{} cannot be used", path.display())
}
