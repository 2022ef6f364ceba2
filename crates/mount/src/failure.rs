//! Failures of the server before or instead of a handler's response.

use http::StatusCode;

use crate::Unauthenticated;

/// A request below the prefix of a mount that the server does not hand to the handler, or that the handler does not finish.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// The status that Kubernetes has for it: 400 (path, headers), 401, 403, 413 (body), 429 (limits), 500 (panic), 503 (start-up)
    /// or 504 (timeout).
    pub status: StatusCode,
    /// The machine-readable reason of a `Status`, such as `Forbidden`.
    pub reason: &'a str,
    /// The message for the client.
    pub message: &'a str,
    /// The path as it was sent.
    pub path: &'a str,
    /// Why the caller is not authenticated. A product may answer 401 instead of 403 then. `None` for an authenticated caller, and
    /// for a request that fails before authentication.
    pub unauthenticated: Option<Unauthenticated>,
    /// Seconds after which the client may try again. The server adds the header `Retry-After`.
    pub retry_after: Option<u32>,
}
