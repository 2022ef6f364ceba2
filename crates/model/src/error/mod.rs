//! Errors of requests, without HTTP, and their `Status` objects.
//!
//! Messages, reasons and details are those of kube-apiserver, because clients compare them.

mod field;
mod messages;
mod quoting;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use self::messages::{
    before_the_end, forbidden, invalid, method_not_allowed, qualified, terminating, unsupported_media_type,
};
use crate::Revision;

pub use field::{FieldError, FieldErrorKind, Path};
pub use lexical::{is_printable, quote};
pub use quoting::display_number;

/// Error of a request. Displays as the message that clients see; the core group is the empty text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The request is malformed, whatever the state of the server.
    #[error("{message}")]
    BadRequest {
        /// The whole message.
        message: String,
    },
    /// The client did not authenticate, or with invalid credentials.
    #[error("Unauthorized")]
    Unauthorized,
    /// The authorizer or an admission plugin forbids it.
    #[error("{}", forbidden(group, resource, name, message))]
    Forbidden {
        /// The group of the resource.
        group: String,
        /// Empty if the path is not that of a resource.
        resource: String,
        /// Empty if no object is named.
        name: String,
        /// The text behind `is forbidden: `.
        message: String,
    },
    /// An admission policy refuses it, with a reason of its own.
    #[error("{}", .0.message)]
    Denied(Box<Denied>),
    /// A new object would be in a namespace that is terminating.
    #[error("{}", forbidden(group, resource, name, &terminating(namespace)))]
    NamespaceTerminating {
        /// The group of the resource.
        group: String,
        /// The plural name of the resource.
        resource: String,
        /// The name of the object.
        name: String,
        /// The namespace.
        namespace: String,
    },
    /// There is no such object.
    #[error("{} {} not found", qualified(resource, group), quote(name))]
    NotFound {
        /// The group of the resource.
        group: String,
        /// The plural name of the resource.
        resource: String,
        /// The name of the object.
        name: String,
    },
    /// There is no such path or resource type.
    #[error("the server could not find the requested resource")]
    PathNotFound,
    /// Nothing is served below this path; the answer is plain text.
    #[error("404 page not found")]
    NoSuchPage,
    /// There is such an object already.
    #[error("{}{} {} already exists", before_the_end(*is_ending), qualified(resource, group), quote(name))]
    AlreadyExists {
        /// The group of the resource.
        group: String,
        /// The plural name of the resource.
        resource: String,
        /// The name of the object.
        name: String,
        /// Whether it is being deleted.
        is_ending: bool,
    },
    /// The object is not in the state the request expects.
    #[error("Operation cannot be fulfilled on {} {}: {message}", qualified(resource, group), quote(name))]
    Conflict {
        /// The group of the resource.
        group: String,
        /// The plural name of the resource.
        resource: String,
        /// The name of the object.
        name: String,
        /// The mismatch.
        message: String,
    },
    /// An applied configuration conflicts with fields of other managers.
    #[error("{message}")]
    ApplyConflict {
        /// The whole message.
        message: String,
        /// The manager, and the path of the field.
        causes: Vec<(String, String)>,
    },
    /// It failed for a reason without a machine-readable name.
    #[error("{message}")]
    Failed {
        /// The whole message.
        message: String,
    },
    /// The requested revision is compacted.
    #[error("{message}")]
    Expired {
        /// The whole message.
        message: String,
        /// Continues a paged list, at the newest revision.
        continue_token: Option<String>,
    },
    /// The object violates validation rules, field by field.
    ///
    /// With neither kind nor errors it stands for a patch that cannot be applied, without details.
    #[error("{}", invalid(group, kind, name, errors))]
    Invalid {
        /// The group of the kind.
        group: String,
        /// The kind, such as `ConfigMap`.
        kind: String,
        /// The name of the object; may be empty.
        name: String,
        /// One for each violation.
        errors: Vec<FieldError>,
    },
    /// The resource does not support the verb. An empty resource stands for a path that does not support the
    /// HTTP method.
    #[error("{}", method_not_allowed(group, resource, verb))]
    MethodNotAllowed {
        /// The group of the resource.
        group: String,
        /// The plural name of the resource.
        resource: String,
        /// The verb, such as `create`.
        verb: String,
    },
    /// None of the media types that the client accepts can be produced.
    #[error("only the following media types are accepted: {}", accepted.join(", "))]
    NotAcceptable {
        /// The media types that can be produced.
        accepted: Vec<String>,
    },
    /// No clause of the `Accept` header names a known media type.
    #[error("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "))]
    NoRepresentation {
        /// The media types that can be produced.
        available: Vec<String>,
    },
    /// The body has a media type that is not accepted here. An empty list stands for a path without details.
    #[error("{}", unsupported_media_type(accepted))]
    UnsupportedMediaType {
        /// The media types that are accepted.
        accepted: Vec<String>,
    },
    /// The body is too large.
    #[error("Request entity too large: limit is {limit}")]
    TooLarge {
        /// The largest body, in bytes.
        limit: usize,
    },
    /// The resulting object is larger than the store keeps.
    #[error("Request entity too large: {message}")]
    ObjectTooLarge {
        /// The size and the limit.
        message: String,
    },
    /// A JSON patch has too many operations.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {given}"
    )]
    TooManyOperations {
        /// The largest number of operations.
        limit: usize,
        /// Their number.
        given: usize,
    },
    /// The client sends too many requests, or one that would be disruptive now.
    #[error("{message}")]
    TooManyRequests {
        /// The whole message.
        message: String,
        /// Seconds after which to try again; zero for unspecified.
        retry_after_seconds: u32,
    },
    /// The PodDisruptionBudget does not allow an eviction now.
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    DisruptionBudget {
        /// The reason.
        cause: String,
        /// Seconds after which to try again; zero for unspecified.
        retry_after_seconds: u32,
    },
    /// The requested revision is ahead of the clock.
    #[error("Timeout: Too large resource version: {requested}, current: {current}")]
    FutureRevision {
        /// The requested revision.
        requested: Revision,
        /// The newest revision.
        current: Revision,
    },
    /// It took too long; it may still succeed.
    #[error("Timeout: {message}")]
    Timeout {
        /// The text behind `Timeout: `.
        message: String,
        /// Seconds after which to try again; zero for unspecified.
        retry_after_seconds: u32,
    },
    /// All generated names were taken.
    #[error(
        "{} {} already exists, the server was not able to generate a unique name for the object",
        qualified(resource, group),
        quote(name)
    )]
    GenerateNameConflict {
        /// The group of the resource.
        group: String,
        /// The plural name of the resource.
        resource: String,
        /// The last name tried.
        name: String,
    },
    /// The CRD of a resource kept changing while an object of it was written.
    #[error("the definition of the resource is changing; please try again")]
    DefinitionChanged,
    /// An answer decided elsewhere, such as by a webhook, as it is.
    #[error("{message}")]
    Decided {
        /// The HTTP status code.
        code: u16,
        /// The machine-readable reason; empty for none.
        reason: String,
        /// The whole message.
        message: String,
        /// The details of the `Status`, an object.
        details: Option<Value>,
    },
    /// A fault of the server. The message is sent to the client and must hold nothing confidential.
    #[error("Internal error occurred: {message}")]
    Internal {
        /// The text behind `Internal error occurred: `.
        message: String,
    },
    /// The server cannot serve it at present.
    #[error("{message}")]
    Unavailable {
        /// The whole message.
        message: String,
    },
}

/// A request that admission policies refuse.
#[derive(Clone, Debug, PartialEq)]
pub struct Denied {
    /// The group of the resource.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The name of the object.
    pub name: String,
    /// The whole message.
    pub message: String,
    /// The reason.
    pub reason: &'static str,
    /// The code.
    pub code: u16,
    /// The message of each policy.
    pub causes: Vec<String>,
}

impl Error {
    /// A [`Error::BadRequest`] with this message.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::BadRequest { message: message.into() }
    }

    /// A [`Error::Internal`] with this message.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal { message: message.into() }
    }

    /// The error of an admission policy that forbids a request, with the policy's reason and its code.
    pub fn denied(
        group: &str,
        resource: &str,
        name: &str,
        message: String,
        reason: &'static str,
        code: u16,
    ) -> Self {
        let (group, resource, name) = (group.to_owned(), resource.to_owned(), name.to_owned());
        let whole = forbidden(&group, &resource, &name, &message);
        let causes = vec![message];
        Self::Denied(Box::new(Denied { group, resource, name, message: whole, reason, code, causes }))
    }

    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Decided { code, .. } => *code,
            Self::BadRequest { .. } => 400,
            Self::Unauthorized => 401,
            Self::Denied(denied) => denied.code,
            Self::Forbidden { .. } | Self::NamespaceTerminating { .. } => 403,
            Self::NotFound { .. } | Self::PathNotFound | Self::NoSuchPage => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::NotAcceptable { .. } | Self::NoRepresentation { .. } => 406,
            Self::AlreadyExists { .. }
            | Self::Conflict { .. }
            | Self::ApplyConflict { .. }
            | Self::GenerateNameConflict { .. } => 409,
            Self::Expired { .. } => 410,
            Self::TooLarge { .. } | Self::ObjectTooLarge { .. } | Self::TooManyOperations { .. } => 413,
            Self::UnsupportedMediaType { .. } => 415,
            Self::Invalid { .. } => 422,
            Self::TooManyRequests { .. } | Self::DisruptionBudget { .. } => 429,
            Self::Internal { .. } | Self::Failed { .. } => 500,
            Self::Unavailable { .. } | Self::DefinitionChanged => 503,
            Self::FutureRevision { .. } | Self::Timeout { .. } => 504,
        }
    }

    /// The machine-readable reason in the `Status`; empty for none.
    pub fn reason(&self) -> &str {
        match self {
            Self::Decided { reason, .. } => reason,
            Self::BadRequest { .. } => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Denied(denied) => denied.reason,
            Self::Forbidden { .. } | Self::NamespaceTerminating { .. } => "Forbidden",
            Self::NotFound { .. } | Self::PathNotFound | Self::NoSuchPage => "NotFound",
            Self::AlreadyExists { .. } | Self::GenerateNameConflict { .. } => "AlreadyExists",
            Self::Conflict { .. } | Self::ApplyConflict { .. } => "Conflict",
            Self::Expired { .. } => "Expired",
            Self::Invalid { .. } => "Invalid",
            Self::MethodNotAllowed { .. } => "MethodNotAllowed",
            Self::NotAcceptable { .. } | Self::NoRepresentation { .. } => "NotAcceptable",
            Self::UnsupportedMediaType { .. } => "UnsupportedMediaType",
            Self::TooLarge { .. } | Self::ObjectTooLarge { .. } | Self::TooManyOperations { .. } => {
                "RequestEntityTooLarge"
            }
            Self::TooManyRequests { .. } | Self::DisruptionBudget { .. } => "TooManyRequests",
            Self::FutureRevision { .. } | Self::Timeout { .. } => "Timeout",
            Self::Internal { .. } => "InternalError",
            Self::Failed { .. } => "",
            Self::Unavailable { .. } | Self::DefinitionChanged => "ServiceUnavailable",
        }
    }

    /// Seconds after which the client may try again: also the value of the header `Retry-After`.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        match self {
            Self::FutureRevision { .. } | Self::GenerateNameConflict { .. } => Some(1),
            Self::Decided { details, .. } => {
                let seconds = details.as_ref()?.get("retryAfterSeconds")?.as_u64()?;
                u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)
            }
            Self::TooManyRequests { retry_after_seconds, .. }
            | Self::DisruptionBudget { retry_after_seconds, .. }
            | Self::Timeout { retry_after_seconds, .. } => {
                Some(*retry_after_seconds).filter(|seconds| *seconds > 0)
            }
            _ => None,
        }
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.to_string(),
            "code": self.code(),
        });
        if !self.reason().is_empty() {
            status["reason"] = self.reason().into();
        }
        if let Self::Expired { continue_token: Some(token), .. } = self {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if let Some(details) = self.details() {
            status["details"] = details.into();
        }
        status
    }

    /// The details of the `Status`. Some errors have them even if they are empty.
    fn details(&self) -> Option<Map<String, Value>> {
        let mut details = match self {
            Self::Decided { details, .. } => return details.as_ref().and_then(Value::as_object).cloned(),
            Self::Forbidden { group, resource, name, .. }
            | Self::NamespaceTerminating { group, resource, name, .. }
            | Self::NotFound { group, resource, name }
            | Self::AlreadyExists { group, resource, name, .. }
            | Self::Conflict { group, resource, name, .. }
            | Self::GenerateNameConflict { group, resource, name } => subject(group, resource, name),
            Self::Denied(denied) => subject(&denied.group, &denied.resource, &denied.name),
            Self::Invalid { group, kind, name, .. } => subject(group, kind, name),
            Self::MethodNotAllowed { group, resource, .. } => subject(group, resource, ""),
            Self::UnsupportedMediaType { accepted } if accepted.is_empty() => Map::new(),
            Self::PathNotFound
            | Self::NoRepresentation { .. }
            | Self::TooManyRequests { .. }
            | Self::DisruptionBudget { .. }
            | Self::FutureRevision { .. }
            | Self::Timeout { .. }
            | Self::ApplyConflict { .. }
            | Self::Internal { .. } => Map::new(),
            _ => return None,
        };
        let causes = self.causes();
        if !causes.is_empty() {
            details.insert("causes".to_owned(), causes.into());
        }
        if let Some(seconds) = self.retry_after_seconds() {
            details.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        Some(details)
    }

    fn causes(&self) -> Vec<Value> {
        match self {
            Self::Invalid { errors, .. } => errors.iter().map(FieldError::cause).collect(),
            Self::FutureRevision { .. } => {
                vec![json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"})]
            }
            Self::NamespaceTerminating { namespace, .. } => vec![json!({
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            })],
            Self::ApplyConflict { causes, .. } => {
                let cause = |(message, field): &(String, String)| json!({"reason": "FieldManagerConflict", "message": message, "field": field});
                causes.iter().map(cause).collect()
            }
            Self::Denied(denied) => denied.causes.iter().map(|cause| json!({"message": cause})).collect(),
            Self::Internal { message } => vec![json!({"message": message})],
            Self::DisruptionBudget { cause, .. } => {
                vec![json!({"reason": "DisruptionBudget", "message": cause})]
            }
            _ => Vec::new(),
        }
    }
}

/// The subject of the error. Kubernetes leaves empty entries out, and calls resources kinds here.
fn subject(group: &str, kind: &str, name: &str) -> Map<String, Value> {
    [("name", name), ("group", group), ("kind", kind)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}
