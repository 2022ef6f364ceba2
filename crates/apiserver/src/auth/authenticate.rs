//! Authentication: front proxies, client certificates, bearer tokens, and authenticators that a library user adds.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use model::error::Error;
use process::reload::Current;
use subtle::ConstantTimeEq;

use super::Identity;
use super::accounts::Accounts;
use super::impersonate;
use super::proxy::ProxyHeaders;
use crate::warnings::Warnings;

/// A client certificate chain. It is verified for each request, because certificates and CAs expire and CA files are replaced
/// while a connection is open.
pub trait Peer: fmt::Debug + Send + Sync {
    /// Verifies the chain at this time. The result is never [`Connection::Peer`].
    fn verify(&self, now: SystemTime) -> Arc<Connection>;
}

/// The identity that the connection proves.
#[derive(Clone, Debug, Default)]
pub enum Connection {
    /// No client certificate.
    #[default]
    Bare,
    /// A client certificate chain, verified for each request.
    Peer(Arc<dyn Peer>),
    /// A verified client certificate.
    Certificate(Identity),
    /// A client certificate that failed verification, with the reason. It authenticates no user.
    BadCertificate(String),
    /// A trusted front proxy, which names its users in headers. The inner value is the identity of its certificate.
    Proxy(Box<Self>),
    /// A caller in this process.
    InProcess(Identity),
}

/// The credentials of a request.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The identity of the connection.
    pub connection: &'a Connection,
    /// The token of an `Authorization: Bearer` header.
    pub bearer: Option<&'a str>,
}

/// An authentication method.
///
/// ```
/// use apiserver::auth::{Authentication, Authenticator, Credentials, Identity};
/// use futures::future::{BoxFuture, FutureExt, ready};
///
/// /// Authenticates a fixed token.
/// struct Robot;
///
/// impl Authenticator for Robot {
///     fn authenticate<'a>(&'a self, credentials: Credentials<'a>) -> BoxFuture<'a, Result<Option<Identity>, String>> {
///         let robot = || Identity::authenticated("robot", ["machines".to_owned()]);
///         ready(Ok((credentials.bearer == Some("beep")).then(robot))).boxed()
///     }
/// }
///
/// let authentication = Authentication::default().with(std::sync::Arc::new(Robot));
/// ```
pub trait Authenticator: Send + Sync {
    /// `Ok(None)`: other credentials. `Err`: invalid credentials of this method.
    fn authenticate<'a>(
        &'a self,
        credentials: Credentials<'a>,
    ) -> BoxFuture<'a, Result<Option<Identity>, String>>;
}

/// A line of a token file.
#[derive(Clone)]
pub struct StaticToken {
    /// The token.
    pub token: String,
    /// Its user.
    pub identity: Identity,
}

/// The authentication methods in order: proxies, certificates, static tokens, service accounts, then added ones.
#[derive(Clone, Default)]
pub struct Authentication {
    proxies: ProxyHeaders,
    tokens: Current<Vec<StaticToken>>,
    pub(crate) accounts: Option<Arc<Accounts>>,
    added: Vec<Arc<dyn Authenticator>>,
    refuses_anonymous: bool,
    /// The paths with anonymous access; `None` for all.
    anonymous_paths: Option<Vec<String>>,
}

/// Kubernetes' message for every invalid token.
const UNKNOWN: &str = "invalid bearer token";

impl Authentication {
    /// Client certificates and static tokens.
    pub fn new(tokens: Vec<StaticToken>) -> Self {
        Self::following(Current::fixed(tokens))
    }

    /// Client certificates, and static tokens that may be replaced at run time.
    pub fn following(tokens: Current<Vec<StaticToken>>) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// Adds a method.
    #[must_use]
    pub fn with(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.added.push(authenticator);
        self
    }

    /// Trusts these headers of front proxies.
    #[must_use]
    pub fn with_proxies(mut self, headers: ProxyHeaders) -> Self {
        self.proxies = headers;
        self
    }

    /// Disables anonymous access.
    #[must_use]
    pub fn without_anonymous(mut self) -> Self {
        self.refuses_anonymous = true;
        self
    }

    /// Limits anonymous access to these paths.
    #[must_use]
    pub fn with_anonymous_at(mut self, paths: Vec<String>) -> Self {
        self.anonymous_paths = Some(paths);
        self
    }

    /// Refuses anonymous callers outside the anonymous paths.
    pub(crate) fn check_anonymous(&self, caller: &Identity, path: &str) -> Result<(), Error> {
        let is_closed = |paths: &Vec<String>| !paths.iter().any(|open| open == path);
        match &self.anonymous_paths {
            Some(paths) if is_closed(paths) && *caller == Identity::anonymous() => Err(Error::Unauthorized),
            _ => Ok(()),
        }
    }

    /// Authenticates a request. Without credentials the user is `system:anonymous`.
    pub(crate) async fn identify(
        &self,
        connection: &Connection,
        headers: &HeaderMap,
        warnings: &Warnings,
    ) -> Result<Identity, Error> {
        let connection = match connection {
            Connection::Proxy(itself) => match self.proxies.identity(headers) {
                Some(identity) => return Ok(identity),
                None => itself,
            },
            other => other,
        };
        if let Connection::InProcess(identity) | Connection::Certificate(identity) = connection {
            return Ok(identity.clone());
        }
        let bearer = bearer(headers);
        let credentials = Credentials { connection, bearer: bearer.as_deref() };
        let refused = |reason: &str| {
            tracing::debug!(reason, "authentication refused the credentials");
            Err(Error::Unauthorized)
        };
        match self.by_credentials(credentials, None, warnings).await {
            Ok(Some((identity, _))) => Ok(identity),
            Err(reason) => refused(&reason),
            Ok(None) => match connection {
                Connection::BadCertificate(reason) => refused(reason),
                _ if credentials.bearer.is_some() => refused(UNKNOWN),
                _ if self.refuses_anonymous => refused("there are none"),
                _ => Ok(Identity::anonymous()),
            },
        }
    }

    /// Whether a request has credentials, valid or not.
    pub(crate) fn has_credentials(connection: &Connection, headers: &HeaderMap) -> bool {
        match connection {
            Connection::BadCertificate(_) => true,
            Connection::Proxy(itself) => Self::has_credentials(itself, headers),
            _ => bearer(headers).is_some(),
        }
    }

    /// Removes headers with credentials or identities, before a mount handles the request.
    pub(crate) fn remove_credentials(&self, headers: &mut HeaderMap) {
        let names: Vec<HeaderName> = headers.keys().cloned().collect();
        for name in names {
            if name == AUTHORIZATION || impersonate::is_header(&name) || self.proxies.has(name.as_str()) {
                headers.remove(name);
            }
        }
    }

    /// The user of a token for a TokenReview, and the accepted audiences; without requested audiences those of this server.
    pub(crate) async fn owner_of(
        &self,
        token: &str,
        wanted: &[String],
        warnings: &Warnings,
    ) -> Result<(Identity, Vec<String>), String> {
        let credentials = Credentials { connection: &Connection::Bare, bearer: Some(token) };
        let wanted = Some(wanted).filter(|wanted| !wanted.is_empty());
        match self.by_credentials(credentials, wanted, warnings).await {
            Ok(found) => {
                found.filter(|(_, audiences)| !audiences.is_empty()).ok_or_else(|| UNKNOWN.to_owned())
            }
            Err(reason) => Err(format!("[{UNKNOWN}, {reason}]")),
        }
    }

    async fn by_credentials(
        &self,
        credentials: Credentials<'_>,
        wanted: Option<&[String]>,
        warnings: &Warnings,
    ) -> Result<Option<(Identity, Vec<String>)>, String> {
        let own = self.accounts.as_ref().map_or(&[][..], |accounts| &accounts.settings.audiences);
        let wanted = wanted.unwrap_or(own);
        // A method without audiences accepts those of this server.
        let agnostic = |identity| {
            let audiences = wanted.iter().filter(|audience| own.contains(audience)).cloned().collect();
            Ok(Some((identity, audiences)))
        };
        let mut problem = None;
        if let Some(token) = credentials.bearer {
            if let Some(identity) = self.by_token(token) {
                return agnostic(identity);
            }
            if let Some(accounts) = &self.accounts {
                match Box::pin(accounts.verify(token, wanted, warnings)).await {
                    Ok(None) => {}
                    Ok(found) => return Ok(found),
                    Err(reason) => problem = Some(reason),
                }
            }
        }
        for authenticator in &self.added {
            match authenticator.authenticate(credentials).await {
                Ok(Some(identity)) => return agnostic(identity),
                Ok(None) => {}
                Err(reason) => problem = problem.or(Some(reason)),
            }
        }
        problem.map_or(Ok(None), Err)
    }

    /// Compares every token in constant time.
    fn by_token(&self, given: &str) -> Option<Identity> {
        let (tokens, mut found) = (self.tokens.get(), None);
        for known in tokens.iter() {
            if bool::from(known.token.as_bytes().ct_eq(given.as_bytes())) && found.is_none() {
                found = Some(&known.identity);
            }
        }
        found.cloned()
    }
}

/// A header that is not UTF-8 still counts as a token, so the request is not anonymous.
fn bearer(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let text = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = text.split(|byte| *byte == b' ');
    let (scheme, token) = (words.next()?, words.next()?);
    let is_one = scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty();
    is_one.then(|| String::from_utf8_lossy(token))
}

#[cfg(test)]
mod tests {
    use futures::future::{FutureExt, ready};

    use super::*;

    fn headers(authorization: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(text) = authorization {
            headers.insert(AUTHORIZATION, text.parse().unwrap());
        }
        headers
    }

    fn admin() -> Identity {
        Identity::authenticated("admin", ["system:masters".to_owned()])
    }

    fn authentication() -> Authentication {
        Authentication::new(vec![StaticToken { token: "secret".to_owned(), identity: admin() }])
    }

    async fn identified(authentication: Authentication, text: Option<&str>) -> Result<Identity, Error> {
        authentication.identify(&Connection::Bare, &headers(text), &Warnings::default()).await
    }

    #[tokio::test]
    async fn a_known_token_identifies_its_user() {
        assert_eq!(identified(authentication(), Some("Bearer secret")).await, Ok(admin()));
    }

    #[tokio::test]
    async fn a_reloaded_token_file_applies_to_the_next_request() {
        let (updater, tokens) = process::reload::Updater::new(Vec::new());
        let authentication = Authentication::following(tokens);
        let identified = || identified(authentication.clone(), Some("Bearer secret"));
        assert_eq!(identified().await, Err(Error::Unauthorized));
        updater.set(vec![StaticToken { token: "secret".to_owned(), identity: admin() }]);
        assert_eq!(identified().await, Ok(admin()));
        updater.set(Vec::new());
        assert_eq!(identified().await, Err(Error::Unauthorized));
    }

    #[tokio::test]
    async fn bad_credentials_are_refused_and_never_become_anonymous() {
        for text in ["Bearer wrong", "Bearer secre", "Bearer secrets", "bearer a.b.c"] {
            assert_eq!(identified(authentication(), Some(text)).await, Err(Error::Unauthorized), "{text}");
        }
        for bytes in [&b"Bearer s\xc3\xa9cret"[..], b"Bearer \xff"] {
            let mut odd = HeaderMap::new();
            odd.insert(AUTHORIZATION, http::HeaderValue::from_bytes(bytes).unwrap());
            assert_eq!(
                authentication().identify(&Connection::Bare, &odd, &Warnings::default()).await,
                Err(Error::Unauthorized)
            );
        }
        let bad = Connection::BadCertificate("unknown authority".to_owned());
        assert_eq!(
            authentication().identify(&bad, &headers(None), &Warnings::default()).await,
            Err(Error::Unauthorized)
        );
    }

    #[tokio::test]
    async fn anonymous_access_may_be_limited_to_some_paths() {
        let authentication = authentication().with_anonymous_at(vec!["/livez".to_owned()]);
        let anonymous = Identity::anonymous();
        assert_eq!(authentication.check_anonymous(&anonymous, "/livez"), Ok(()));
        assert_eq!(authentication.check_anonymous(&anonymous, "/livez/ping"), Err(Error::Unauthorized));
        assert_eq!(authentication.check_anonymous(&admin(), "/api"), Ok(()));
    }

    #[tokio::test]
    async fn requests_without_credentials_are_anonymous_if_allowed() {
        // Other schemes are ignored, as in Kubernetes.
        for text in [None, Some("Basic c2VjcmV0"), Some("Bearer"), Some("Bearer ")] {
            assert_eq!(identified(authentication(), text).await, Ok(Identity::anonymous()), "{text:?}");
            let strict = authentication().without_anonymous();
            assert_eq!(identified(strict, text).await, Err(Error::Unauthorized), "{text:?}");
        }
    }

    #[test]
    fn every_header_that_proves_or_claims_an_identity_is_removed() {
        let mut all = headers(Some("Bearer secret"));
        let others =
            ["impersonate-user", "impersonate-extra-a", "x-remote-user", "x-remote-extra-b", "cookie"];
        for name in others {
            all.insert(name, "value".parse().unwrap());
        }
        let mut without_proxies = all.clone();
        authentication().with_proxies(ProxyHeaders::usual()).remove_credentials(&mut all);
        assert_eq!(all.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["cookie"]);
        authentication().remove_credentials(&mut without_proxies);
        assert_eq!(without_proxies.len(), 3, "without proxies their headers are ordinary ones");
    }

    #[tokio::test]
    async fn a_custom_authenticator_is_called_last() {
        struct Robot;
        impl Authenticator for Robot {
            fn authenticate<'a>(
                &'a self,
                credentials: Credentials<'a>,
            ) -> BoxFuture<'a, Result<Option<Identity>, String>> {
                let robot =
                    (credentials.bearer == Some("beep")).then(|| Identity::authenticated("robot", []));
                ready(Ok(robot)).boxed()
            }
        }
        let got = identified(authentication().with(Arc::new(Robot)), Some("bearer beep")).await.unwrap();
        assert_eq!(got.name, "robot");
        assert!(got.is_in("system:authenticated"));
    }

    #[tokio::test]
    async fn only_a_trusted_proxy_may_name_its_user_in_headers() {
        let mut forwarded = headers(None);
        forwarded.insert("x-remote-user", "jane".parse().unwrap());
        forwarded.append("x-remote-group", "dev".parse().unwrap());
        forwarded.append("x-remote-group", "ops".parse().unwrap());
        forwarded.append("x-remote-extra-acme.com%2fproject", "p".parse().unwrap());
        let trusting = authentication().with_proxies(ProxyHeaders::usual());
        let (proxy, none) = (Connection::Proxy(Box::new(Connection::Bare)), Warnings::default());
        let jane = trusting.identify(&proxy, &forwarded, &none).await.unwrap();
        assert_eq!(
            (jane.name.as_str(), jane.groups.join(" ")),
            ("jane", "dev ops system:authenticated".to_owned())
        );
        assert_eq!(jane.extra["acme.com/project"], ["p"]);
        assert_eq!(trusting.identify(&Connection::Bare, &forwarded, &none).await, Ok(Identity::anonymous()));
        assert_eq!(trusting.identify(&proxy, &headers(None), &none).await, Ok(Identity::anonymous()));
    }
}
