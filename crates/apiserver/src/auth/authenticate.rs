//! Authentication: client certificates, static bearer tokens, and whatever a user of this library adds.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use model::error::Error;
use subtle::ConstantTimeEq;

use super::Identity;

/// What the connection itself proves, found once when it was opened.
#[derive(Clone, Debug, Default)]
pub enum Connection {
    /// The client showed no certificate.
    #[default]
    Bare,
    /// The client showed a certificate of a trusted authority.
    Certificate(Identity),
    /// The client showed a certificate that does not verify, for this reason. It authenticates nobody.
    BadCertificate(String),
    /// The caller is part of this very process.
    InProcess(Identity),
}

/// What a request brings to prove who it comes from.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// From the connection.
    pub connection: &'a Connection,
    /// The token of an `Authorization: Bearer` header.
    pub bearer: Option<&'a str>,
}

/// One way to authenticate.
pub trait Authenticator: Send + Sync {
    /// `Ok(None)`: these credentials are not for me. `Err`: they are for me, and they are bad.
    fn authenticate(&self, credentials: Credentials<'_>) -> Result<Option<Identity>, String>;
}

/// A line of a token file.
#[derive(Clone)]
pub struct StaticToken {
    /// The secret.
    pub token: String,
    /// Whom it stands for.
    pub identity: Identity,
}

/// All ways to authenticate, asked in order: certificates, tokens, then the added ones.
#[derive(Clone, Default)]
pub struct Authentication {
    tokens: Vec<StaticToken>,
    added: Vec<Arc<dyn Authenticator>>,
}

impl Authentication {
    /// Client certificates and these tokens.
    pub fn new(tokens: Vec<StaticToken>) -> Self {
        Self { tokens, added: Vec::new() }
    }

    /// Adds another way.
    #[must_use]
    pub fn with(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.added.push(authenticator);
        self
    }

    /// Who sent these headers over this connection. Without any credentials: the anonymous user.
    pub fn identify(&self, connection: &Connection, headers: &HeaderMap) -> Result<Identity, Error> {
        let credentials = Credentials { connection, bearer: bearer(headers) };
        match connection {
            Connection::InProcess(identity) | Connection::Certificate(identity) => {
                return Ok(identity.clone());
            }
            Connection::Bare | Connection::BadCertificate(_) => {}
        }
        if let Some(identity) = credentials.bearer.and_then(|token| self.by_token(token)) {
            return Ok(identity);
        }
        for authenticator in &self.added {
            match authenticator.authenticate(credentials) {
                Ok(Some(identity)) => return Ok(identity),
                Ok(None) => {}
                Err(reason) => {
                    tracing::info!(reason, "credentials refused");
                    return Err(Error::Unauthorized);
                }
            }
        }
        match connection {
            Connection::BadCertificate(reason) => {
                tracing::info!(reason, "client certificate refused");
                Err(Error::Unauthorized)
            }
            _ if credentials.bearer.is_some() || headers.contains_key(AUTHORIZATION) => {
                Err(Error::Unauthorized)
            }
            _ => Ok(Identity::anonymous()),
        }
    }

    /// Whose token this is, whoever sends it.
    pub fn owner_of(&self, token: &str) -> Option<Identity> {
        let credentials = Credentials { connection: &Connection::Bare, bearer: Some(token) };
        let added = || self.added.iter().find_map(|each| each.authenticate(credentials).ok().flatten());
        self.by_token(token).or_else(added)
    }

    /// Every token is compared in full, so that the time taken tells nothing about any of them.
    fn by_token(&self, given: &str) -> Option<Identity> {
        let mut found = None;
        for known in &self.tokens {
            if bool::from(known.token.as_bytes().ct_eq(given.as_bytes())) && found.is_none() {
                found = Some(&known.identity);
            }
        }
        found.cloned()
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_known_token_identifies_its_user() {
        let got = authentication().identify(&Connection::Bare, &headers(Some("Bearer secret")));
        assert_eq!(got, Ok(admin()));
    }

    #[test]
    fn bad_credentials_are_refused_and_never_become_anonymous() {
        for text in ["Bearer wrong", "Bearer secre", "Bearer secrets", "Basic c2VjcmV0", "Bearer"] {
            let got = authentication().identify(&Connection::Bare, &headers(Some(text)));
            assert_eq!(got, Err(Error::Unauthorized), "{text}");
        }
        let bad = Connection::BadCertificate("unknown authority".to_owned());
        assert_eq!(authentication().identify(&bad, &headers(None)), Err(Error::Unauthorized));
    }

    #[test]
    fn no_credentials_are_anonymous() {
        let got = authentication().identify(&Connection::Bare, &headers(None));
        assert_eq!(got, Ok(Identity::anonymous()));
    }

    #[test]
    fn an_added_authenticator_is_asked_last() {
        struct Robot;
        impl Authenticator for Robot {
            fn authenticate(&self, credentials: Credentials<'_>) -> Result<Option<Identity>, String> {
                Ok((credentials.bearer == Some("beep")).then(|| Identity::authenticated("robot", [])))
            }
        }
        let authentication = authentication().with(Arc::new(Robot));
        let got = authentication.identify(&Connection::Bare, &headers(Some("bearer beep"))).unwrap();
        assert_eq!(got.name, "robot");
        assert!(got.is_in("system:authenticated"));
    }
}
