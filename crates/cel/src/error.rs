//! Evaluation errors.

use std::{borrow::Cow, fmt};

/// An evaluation error. It is a value of the language: `&&` and `||` may absorb it.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    message: Cow<'static, str>,
    is_final: bool,
}

/// The result of an evaluation step.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with a message.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Error { message: message.into(), is_final: false }
    }

    /// No overload accepts arguments of these types.
    pub fn no_such_overload() -> Self {
        Error::new("no such overload")
    }

    /// A map or object lacks this key.
    pub fn no_such_key(key: impl fmt::Display) -> Self {
        Error::new(format!("no such key: {key}"))
    }

    /// The evaluation exceeds its cost limit. No operator absorbs this error.
    pub(crate) fn cost_limit() -> Self {
        Error { message: Cow::Borrowed("operation cancelled: actual cost limit exceeded"), is_final: true }
    }

    /// Whether the cost limit was exceeded.
    pub fn is_cost_limit(&self) -> bool {
        self.is_final
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
