//! Why a request was in vain.

use kube::core::Status;
use thiserror::Error;

/// What a request or a reconciliation fails with. The text of an answer is what the server said, and nothing else.
#[derive(Debug, Error)]
pub enum Error {
    /// The server refused.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// Something else was in the way.
    #[error("{0}")]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// What most functions here give.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of one's own.
    pub fn other(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(reason.into())
    }

    /// The code of the server's answer; 0 if there was none.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused(status) => status.code,
            Self::Other(_) => 0,
        }
    }

    /// The object, or the type, is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// Somebody else was faster, or a precondition does not hold.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// The namespace is being deleted, and takes nothing new.
    #[must_use]
    pub fn is_of_ending_namespace(&self) -> bool {
        let Self::Refused(status) = self else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// The method is not offered for this resource.
    #[must_use]
    pub fn is_not_allowed(&self) -> bool {
        self.code() == 405
    }

    /// The server has too much to do to look at the request.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.code() == 429
    }

    /// The revision that was asked for is no longer known.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code() == 410
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
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
