//! A request as a handler receives it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;

use crate::{ActingClient, Mount};

/// A request below the prefix of a mount, after authentication, authorization and all limits.
#[derive(Debug)]
pub struct Call {
    /// Method, path and query as they were sent, headers, and the whole body. Credentials are removed from the headers.
    pub request: Request<Bytes>,
    /// The caller. There may be none at a public path.
    pub caller: Result<Caller, Unauthenticated>,
    below: usize,
}

impl Call {
    /// A call of a handler of this mount. `None` if the path of the request is not below the prefix.
    #[must_use]
    pub fn new(
        mount: &Mount,
        request: Request<Bytes>,
        caller: Result<Caller, Unauthenticated>,
    ) -> Option<Self> {
        mount.path_below(request.uri().path())?;
        Some(Self { request, caller, below: mount.prefix().len() })
    }

    /// The path behind the prefix, percent-encoded as it was sent: empty, or text that begins with a slash.
    #[must_use]
    pub fn path(&self) -> &str {
        self.request.uri().path().get(self.below..).unwrap_or_default()
    }

    /// The segments of [`Call::path`], percent-encoded as they were sent.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.path().split('/').filter(|segment| !segment.is_empty())
    }
}

/// The caller of a request, after impersonation.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The identity.
    pub user: User,
    /// A client of the API server that acts as this user while their request lasts.
    pub client: ActingClient,
}

/// An identity, as `SelfSubjectReview` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: String,
    /// Tells users of one name apart; may be empty.
    pub uid: String,
    /// All groups.
    pub groups: Vec<String>,
    /// Further attributes, by keys of the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whether the request came without credentials, and the server accepts such requests.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.groups.iter().any(|group| group == "system:unauthenticated")
    }
}

/// The reason why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    /// The request has no credentials, and the server accepts no anonymous requests at this path.
    #[error("the request has no credentials")]
    NoCredentials,
    /// The credentials are unknown, expired or malformed.
    #[error("the credentials are invalid")]
    InvalidCredentials,
}
