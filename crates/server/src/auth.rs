//! Authentication and authorization of a server, validated.

use std::path::{Path, PathBuf};

use apiserver::auth::{
    Authentication, ClusterAuthenticationInfo, Mode, ProxyHeaders, RequestHeaderInfo, ServiceAccounts,
    StaticToken,
};
use process::{
    reload::{self, Content, Current, NamedFile, Reloader, Updater},
    signing::{PublicKey, SigningKey},
};

use crate::{Error, client_cas::ClientCas};

/// The callers that a server knows, and the authorizers that decide about their requests.
#[derive(Debug)]
pub struct AuthConfig {
    /// The authorizers, in the order in which they are asked.
    pub modes: Vec<Mode>,
    /// Requests without credentials.
    pub anonymous: Anonymous,
    /// The static bearer tokens.
    pub tokens: Current<Vec<StaticToken>>,
    /// The CAs of client certificates. The server adds its own CA.
    pub client_cas: Updater<ClientCas>,
    /// The front proxies, if any.
    pub front_proxies: Option<FrontProxies>,
    /// The tokens of service accounts.
    pub service_accounts: ServiceAccountConfig,
}

/// Requests without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    /// They are those of the user `system:anonymous`.
    #[default]
    Allowed,
    /// The same, at these paths; refused at all others.
    AllowedAt(Vec<String>),
    /// They are refused.
    Refused,
}

/// Proxies that authenticate callers and name them in headers. Their CAs are [`ClientCas::front_proxies`].
#[derive(Clone, Debug)]
pub struct FrontProxies {
    /// Their common names; empty for any.
    pub names: Vec<String>,
    /// The headers that name the caller.
    pub headers: ProxyHeaders,
}

/// The tokens of service accounts.
#[derive(Clone, Debug)]
pub struct ServiceAccountConfig {
    /// The key that signs.
    pub signing_key: SigningKeySource,
    /// The keys that verify; `None` for the public half of the signing key.
    pub keys: Option<Current<Vec<PublicKey>>>,
    /// The issuers: the first one signs, all are accepted. Empty for the default issuer.
    pub issuers: Vec<String>,
    /// The audiences of tokens for this server; empty for the issuers.
    pub audiences: Vec<String>,
    /// The longest lifetime in seconds.
    pub max_lifetime: Option<i64>,
    /// Whether tokens of Pods live for a year, for programs that never read them again.
    pub extends_pod_tokens: bool,
    /// The published URL of the key set; `None` for the address of the server.
    pub jwks_uri: Option<String>,
}

/// The origin of the key that signs tokens of service accounts.
#[derive(Clone, Debug, Default)]
pub enum SigningKeySource {
    /// A new key, which ends with the server.
    #[default]
    Ephemeral,
    /// This file, which is created if missing and reloaded when it changes.
    File(PathBuf),
    /// This key.
    Key(Current<SigningKey>),
}

impl Default for AuthConfig {
    /// RBAC decides, and only the server's own CA is trusted.
    fn default() -> Self {
        Self {
            modes: vec![Mode::Rbac],
            anonymous: Anonymous::default(),
            tokens: Current::default(),
            client_cas: Updater::new(ClientCas::default()).0,
            front_proxies: None,
            service_accounts: ServiceAccountConfig::default(),
        }
    }
}

impl Default for ServiceAccountConfig {
    fn default() -> Self {
        Self {
            signing_key: SigningKeySource::default(),
            keys: None,
            issuers: Vec::new(),
            audiences: Vec::new(),
            max_lifetime: None,
            extends_pod_tokens: true,
            jwks_uri: None,
        }
    }
}

impl AuthConfig {
    /// The authenticators of the API server.
    pub(crate) fn authentication(&self) -> Authentication {
        let mut authentication = Authentication::following(self.tokens.clone());
        if let Some(proxies) = &self.front_proxies {
            authentication = authentication.with_proxies(proxies.headers.clone());
        }
        match &self.anonymous {
            Anonymous::Allowed => authentication,
            Anonymous::AllowedAt(paths) => authentication.with_anonymous_at(paths.clone()),
            Anonymous::Refused => authentication.without_anonymous(),
        }
    }

    /// The names of front proxies, if there are front proxies.
    pub(crate) fn front_proxy_names(&self) -> Option<Vec<String>> {
        self.front_proxies.as_ref().map(|proxies| proxies.names.clone())
    }

    /// Makes the content of the ConfigMap `extension-apiserver-authentication` from the trusted CAs.
    pub(crate) fn publisher(&self) -> impl Fn(&ClientCas) -> ClusterAuthenticationInfo + Send + use<> {
        let proxies = self.front_proxies.clone();
        move |trusted| {
            let proxies = proxies.clone().map(|FrontProxies { names, headers }| RequestHeaderInfo {
                ca: trusted.front_proxies.pem.clone(),
                allowed_names: names,
                headers,
            });
            ClusterAuthenticationInfo { client_ca: trusted.client_pem(), request_header: proxies }
        }
    }
}

impl ServiceAccountConfig {
    /// The settings of the API server. A key file is created if missing, and followed by `files`.
    pub(crate) async fn settings(&self, files: &mut Reloader) -> Result<ServiceAccounts, Error> {
        let mut settings = match &self.signing_key {
            SigningKeySource::Ephemeral => ServiceAccounts::ephemeral().map_err(Error::Bootstrap)?,
            SigningKeySource::Key(key) => ServiceAccounts::new(key.clone()),
            SigningKeySource::File(path) => {
                ensure_signing_key(path.clone()).await?;
                ServiceAccounts::new(follow_signing_key(files, path.clone())?)
            }
        };
        settings.keys.clone_from(&self.keys);
        (settings.longest, settings.extends) = (self.max_lifetime, self.extends_pod_tokens);
        settings.jwks_uri.clone_from(&self.jwks_uri);
        if !self.issuers.is_empty() {
            settings.issuers.clone_from(&self.issuers);
            settings.audiences.clone_from(&self.issuers);
        }
        if !self.audiences.is_empty() {
            settings.audiences.clone_from(&self.audiences);
        }
        Ok(settings)
    }
}

/// Creates the key file if it is missing.
async fn ensure_signing_key(path: PathBuf) -> Result<(), Error> {
    let made = tokio::task::spawn_blocking(move || {
        let folder = path.parent().unwrap_or(Path::new("."));
        let made = process::files::create_private_folder(folder).and_then(|()| SigningKey::ensure(&path));
        made.map_err(|reason| Error::SigningKey { path, reason })
    });
    made.await.map_err(Error::blocking)?.map(drop)
}

/// Follows the file of the key that signs tokens of service accounts.
///
/// # Errors
/// A file that cannot be read or used.
pub fn follow_signing_key(files: &mut Reloader, path: PathBuf) -> Result<Current<SigningKey>, reload::Error> {
    let file = NamedFile { flag: "--service-account-signing-key-file", path };
    let parse = |contents: &[Content]| {
        let [Content { path, bytes }] = contents else { return Err("there is one signing key".to_owned()) };
        SigningKey::from_pem(bytes).map_err(|error| format!("{}: {error}", unusable(path)))
    };
    files.follow("service-account-signing-key-file", vec![file], parse)
}

/// Follows the files of the keys that verify tokens of service accounts.
///
/// # Errors
/// A file that cannot be read or used.
pub fn follow_keys(
    files: &mut Reloader,
    paths: Vec<NamedFile>,
) -> Result<Current<Vec<PublicKey>>, reload::Error> {
    let parse = |contents: &[Content]| {
        let mut keys = Vec::new();
        for Content { path, bytes } in contents {
            let found = PublicKey::all_from_pem(bytes);
            keys.extend(found.map_err(|error| format!("{}: {error}", unusable(path)))?);
        }
        Ok::<_, String>(keys)
    };
    files.follow("service-account-key-file", paths, parse)
}

/// The beginning of a message about the content of a file.
#[must_use]
pub fn unusable(path: &Path) -> String {
    format!("{} cannot be used", path.display())
}
