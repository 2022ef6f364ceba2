//! Errors of requests and reconciliations.

use kube::core::Status;
use thiserror::Error;

use crate::FieldConflict;

/// The error of a request or a reconciliation. The text of an answer is the server's message, and nothing else.
#[derive(Debug, Error)]
pub enum Error {
    /// The server answered with an error.
    #[error("{}", .0.message)]
    Api(Box<Status>),
    /// An unforced apply would change fields that other managers own.
    #[error("{}", .status.message)]
    ApplyConflict {
        /// The server's answer.
        status: Box<Status>,
        /// The fields.
        fields: Vec<FieldConflict>,
    },
    /// The server serves no such kind, or not yet.
    #[error("no matches for kind {kind:?} in version {api_version:?}")]
    NoKindMatch {
        /// The group and version, such as `apps/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// Any other error.
    #[error("{0}")]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// The result of most functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of one's own.
    pub fn other(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(reason.into())
    }

    fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(status) | Self::ApplyConflict { status, .. } => Some(status),
            Self::NoKindMatch { .. } | Self::Other(_) => None,
        }
    }

    /// The HTTP status code of the server's answer; 0 if there was none.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.status().map_or(0, |status| status.code)
    }

    /// There is no such object, or no such resource.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// The object has changed, a precondition does not hold, or other managers own the fields.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// An object of this name exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.is_conflict() && self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// The namespace is being deleted, and no object can be created in it.
    #[must_use]
    pub fn is_namespace_terminating(&self) -> bool {
        let causes = self.status().and_then(|status| status.details.as_ref()).map(|details| &details.causes);
        causes.into_iter().flatten().any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// The resource does not support the method.
    #[must_use]
    pub fn is_method_not_allowed(&self) -> bool {
        self.code() == 405
    }

    /// The server has too many requests to look at this one.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == 429
    }

    /// The server no longer knows the resource version or the continue token.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code() == 410
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Api(status),
            other => Self::Other(Box::new(other)),
        }
    }
}

impl From<kube::core::request::Error> for Error {
    fn from(error: kube::core::request::Error) -> Self {
        Self::other(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::other(error)
    }
}
