//! The audit policy and the events of the audit log. Pure: the API server writes them.

mod event;
mod policy;
#[cfg(test)]
mod tests;

pub use event::{Event, ObjectReference, User, without_managers};
pub use policy::{Attributes, AuditTarget, Extent, Policy};

/// The audit level of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No events.
    #[default]
    None,
    /// User, verb, object, time and status.
    Metadata,
    /// Metadata and the request body.
    Request,
    /// Metadata, the request body and the response body.
    RequestResponse,
}

impl Level {
    pub(super) const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// The name in policies and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The stage at which an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Right after authentication.
    RequestReceived,
    /// The header of a long-running response is sent.
    ResponseStarted,
    /// The response is complete.
    ResponseComplete,
    /// The handler panicked.
    Panic,
}

impl Stage {
    pub(super) const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// The name in policies and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}
