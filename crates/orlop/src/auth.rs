//! Authentication and authorization flags.

use std::path::PathBuf;

use anyhow::{Result, bail};
use apiserver::auth::{Mode, ProxyHeaders, StaticToken};
use clap::{ArgAction, Args};
use process::reload::{Current, NamedFile, Reloader, Updater};
use server::{
    Anonymous, AuthConfig, ClientCas, FrontProxies, ServiceAccountConfig, SigningKeySource, follow_keys,
    follow_signing_key, watch_bundle,
};

/// The help heading of these flags.
pub(crate) const HEADING: &str = "Authentication and authorization";

/// Authentication and authorization flags, by kube-apiserver's names.
#[derive(Args, Debug)]
pub(crate) struct AuthArgs {
    /// Authorizers, in the order in which they are asked: RBAC, AlwaysAllow, AlwaysDeny
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "RBAC", help_heading = HEADING)]
    pub(crate) authorization_mode: Vec<String>,

    /// Accept requests without credentials as user system:anonymous
    ///
    /// They are always refused if --authorization-mode contains AlwaysAllow, as in kube-apiserver.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = HEADING)]
    pub(crate) anonymous_auth: bool,

    /// Verify service account tokens with the keys in this PEM file; may be repeated
    ///
    /// By default they are verified with the signing key.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// Sign service account tokens with this private key [default: DIR/pki/sa.key]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,

    /// Issuer of service account tokens; if repeated, the first one issues and all are accepted
    #[arg(long, value_name = "URL", help_heading = HEADING)]
    pub(crate) service_account_issuer: Vec<String>,

    /// Maximum lifetime of service account tokens, in seconds
    #[arg(long, value_name = "SECONDS", help_heading = HEADING)]
    pub(crate) service_account_max_token_expiration: Option<i64>,

    /// Extend tokens of Pods to one year, for programs that read their token only once
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = HEADING)]
    pub(crate) service_account_extend_token_expiration: bool,

    /// Published URL of the service account key set [default: the address of the server]
    #[arg(long, value_name = "URL", help_heading = HEADING)]
    pub(crate) service_account_jwks_uri: Option<String>,

    /// Audiences of tokens for this server [default: the issuers]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HEADING)]
    pub(crate) api_audiences: Vec<String>,

    /// Trust front proxies whose client certificates are signed by the CAs in this PEM file
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,

    /// Trust only front proxies with these common names [default: any]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HEADING)]
    pub(crate) requestheader_allowed_names: Vec<String>,

    /// Headers in which a front proxy sends the user name
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', help_heading = HEADING)]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// Headers in which a front proxy sends the UID
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', help_heading = HEADING)]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Headers in which a front proxy sends the groups
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', help_heading = HEADING)]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// Prefixes of the headers in which a front proxy sends extra attributes
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',', help_heading = HEADING)]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

impl AuthArgs {
    /// Validates the flags, and follows the files that they name. `client_cas` already follows `--client-ca-file`.
    pub(crate) fn config(
        self,
        files: &mut Reloader,
        client_cas: Updater<ClientCas>,
        tokens: Current<Vec<StaticToken>>,
    ) -> Result<AuthConfig> {
        let mode = |name: &String| match Mode::from_name(name) {
            Some(mode) => Ok(mode),
            None => bail!(
                "--authorization-mode: there is no mode {name:?}; there are RBAC, AlwaysAllow and AlwaysDeny"
            ),
        };
        let modes = self.authorization_mode.iter().map(mode).collect::<Result<_>>()?;
        let keys = self.service_account_key_file.into_iter();
        let keys: Vec<_> = keys.map(|path| NamedFile { flag: "--service-account-key-file", path }).collect();
        let keys = if keys.is_empty() { None } else { Some(follow_keys(files, keys)?) };
        let signing_key = match self.service_account_signing_key_file {
            Some(path) => SigningKeySource::Key(follow_signing_key(files, path)?),
            None => SigningKeySource::Ephemeral,
        };
        let front_proxies = match self.requestheader_client_ca_file {
            None => None,
            Some(path) => {
                let file = NamedFile { flag: "--requestheader-client-ca-file", path };
                watch_bundle(files, file, &client_cas, |cas| &mut cas.front_proxies)?;
                let headers = ProxyHeaders {
                    users: self.requestheader_username_headers,
                    uids: self.requestheader_uid_headers,
                    groups: self.requestheader_group_headers,
                    extra_prefixes: self.requestheader_extra_headers_prefix,
                };
                Some(FrontProxies { names: self.requestheader_allowed_names, headers })
            }
        };
        // With AlwaysAllow, anonymous requests could do everything.
        let allows_all = self.authorization_mode.iter().any(|mode| mode == "AlwaysAllow");
        let is_anonymous_allowed = self.anonymous_auth && !allows_all;
        Ok(AuthConfig {
            modes,
            anonymous: if is_anonymous_allowed { Anonymous::Allowed } else { Anonymous::Refused },
            tokens,
            client_cas,
            front_proxies,
            service_accounts: ServiceAccountConfig {
                signing_key,
                keys,
                issuers: self.service_account_issuer,
                audiences: self.api_audiences,
                max_lifetime: self.service_account_max_token_expiration,
                extends_pod_tokens: self.service_account_extend_token_expiration,
                jwks_uri: self.service_account_jwks_uri,
            },
        })
    }
}
