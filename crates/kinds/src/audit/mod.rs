//! The audit log: which requests it has, how much of them, and the events that say so. Pure: nothing here writes.

mod event;
mod policy;
#[cfg(test)]
mod tests;

pub use event::{Event, ObjectReference, User, without_managers};
pub use policy::{Attributes, Extent, Policy, Target};

/// How much of a request the log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who, what, when, and what became of it.
    Metadata,
    /// That, and what was sent.
    Request,
    /// That, and what was answered.
    RequestResponse,
}

impl Level {
    pub(super) const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// As policies and events name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// When an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// As soon as it is known who asks for what.
    RequestReceived,
    /// The head of an answer is sent whose body goes on for long.
    ResponseStarted,
    /// The answer is complete.
    ResponseComplete,
    /// The server failed badly.
    Panic,
}

impl Stage {
    pub(super) const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// As policies and events name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}
