//! A validation error of one field of an object.

mod path;

use std::fmt;

use lexical::quote;
use serde_json::{Value, json};

use super::quoting::display;

pub use path::Path;

/// A validation error of one field. Displays as `path: message`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The field, as in `spec.containers[0].name` or `metadata.labels[a.b/c]`.
    pub path: String,
    /// The kind of rule.
    pub kind: FieldErrorKind,
    /// The value at fault; `None` leaves it out of the message.
    pub value: Option<Value>,
    /// Description of the rule; may be empty.
    pub detail: String,
}

/// The kinds of rules about fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The referenced object does not exist.
    NotFound,
    /// A value is required.
    Required,
    /// The value has to be unique.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is not among the supported ones; the detail lists them.
    NotSupported,
    /// The value is not permitted in this context.
    Forbidden,
    /// The value is too long to be repeated in a message.
    TooLong,
    /// The list has too many items; the value is their number.
    TooMany,
    /// The value is of the wrong JSON type.
    TypeInvalid,
    /// The server failed to check the value.
    Internal,
}

impl FieldError {
    /// The referenced object does not exist.
    pub fn not_found(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::with_value(FieldErrorKind::NotFound, path, value, "")
    }

    /// A value is required.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::without_value(FieldErrorKind::Required, path, detail)
    }

    /// The value has to be unique.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::with_value(FieldErrorKind::Duplicate, path, value, "")
    }

    /// The value has to be unique; `shown` is its text, for values that Kubernetes does not show as the
    /// client sent them.
    pub fn duplicate_shown(path: impl Into<String>, shown: &str) -> Self {
        Self::without_value(FieldErrorKind::Duplicate, path, shown)
    }

    /// The value is malformed or out of bounds.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::with_value(FieldErrorKind::Invalid, path, value, detail)
    }

    /// The value is malformed; `shown` is its text, for values that Kubernetes does not show as the client
    /// sent them.
    pub fn invalid_shown(path: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self::without_value(FieldErrorKind::Invalid, path, format!("{shown}: {detail}"))
    }

    /// The value is none of `supported`, which the message lists in this order.
    pub fn not_supported(path: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let list = supported.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ");
        let detail = if list.is_empty() { list } else { format!("supported values: {list}") };
        Self::with_value(FieldErrorKind::NotSupported, path, value, detail)
    }

    /// The value is not permitted in this context.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::without_value(FieldErrorKind::Forbidden, path, detail)
    }

    /// The text is longer than `limit` bytes.
    pub fn too_long(path: impl Into<String>, limit: usize) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::without_value(FieldErrorKind::TooLong, path, format!("may not be more than {limit} {unit}"))
    }

    /// The list has `count` items, more than `limit`.
    pub fn too_many(path: impl Into<String>, count: usize, limit: usize) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        Self::with_value(FieldErrorKind::TooMany, path, count, format!("must have at most {limit} {unit}"))
    }

    /// The value is of the wrong JSON type.
    pub fn type_invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::with_value(FieldErrorKind::TypeInvalid, path, value, detail)
    }

    /// The server failed to check the value.
    pub fn internal(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::without_value(FieldErrorKind::Internal, path, detail)
    }

    /// Shows the value as this text: Go writes the fields of a struct in the order of their declaration.
    pub fn showing(mut self, value: &str) -> Self {
        self.value = None;
        self.detail =
            if self.detail.is_empty() { value.to_owned() } else { format!("{value}: {}", self.detail) };
        self
    }

    /// The message without the path.
    pub fn body(&self) -> String {
        let mut body = self.kind.title().to_owned();
        if let Some(value) = self.value.as_ref().filter(|_| self.kind.shows_value()) {
            body.push_str(": ");
            body.push_str(&display(value));
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    /// Its entry in `details.causes` of a `Status`.
    pub(super) fn cause(&self) -> Value {
        let mut cause = json!({"reason": self.kind.reason(), "message": self.body()});
        if !self.path.is_empty() {
            cause["field"] = self.path.as_str().into();
        }
        cause
    }

    fn with_value(
        kind: FieldErrorKind,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), kind, value: Some(value.into()), detail: detail.into() }
    }

    fn without_value(kind: FieldErrorKind, path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind, value: None, detail: detail.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl FieldErrorKind {
    /// The machine-readable reason of the cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::Internal)
    }
}
