//! Server-side apply: who applies, whether by force, and the fields that other managers own.

use std::fmt;

use kube::api::PatchParams;
use kube::core::Status;

use crate::Error;

/// The reason of a cause that names a field of another manager.
const FIELD_CONFLICT: &str = "FieldManagerConflict";

/// The manner of a server-side apply. Without more it is not forced: fields of other managers are [`Error::ApplyConflict`].
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    manager: &'a str,
    is_forced: bool,
    is_dry_run: bool,
}

impl<'a> Apply<'a> {
    /// An apply as a field manager.
    #[must_use]
    pub fn new(manager: &'a str) -> Self {
        Self { manager, is_forced: false, is_dry_run: false }
    }

    /// Takes over the fields that other managers own.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.is_forced = true;
        self
    }

    /// Validates and admits, but stores nothing. The answer is the object as it would be.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    pub(crate) fn params(&self) -> PatchParams {
        let Self { manager, is_forced, is_dry_run } = *self;
        PatchParams {
            field_manager: Some(manager.to_owned()),
            force: is_forced,
            dry_run: is_dry_run,
            ..PatchParams::default()
        }
    }
}

/// A field that an unforced apply would change and another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
    /// The server's sentence about the other manager, such as `conflict with "kubectl" using apps/v1`.
    pub message: String,
}

impl FieldConflict {
    /// The name of the other manager, if the server says it.
    #[must_use]
    pub fn manager(&self) -> Option<&str> {
        let (_, rest) = self.message.split_once('"')?;
        rest.split_once('"').map(|(manager, _)| manager)
    }
}

impl fmt::Display for FieldConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl Error {
    /// An answer 409 that names fields becomes [`Error::ApplyConflict`]. One that does not is about the resource version.
    pub(crate) fn into_apply_conflict(self) -> Self {
        match self {
            Self::Api(status) => match conflicts(&status) {
                fields if fields.is_empty() => Self::Api(status),
                fields => Self::ApplyConflict { status, fields },
            },
            other => other,
        }
    }
}

fn conflicts(status: &Status) -> Vec<FieldConflict> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields = causes.filter(|cause| status.code == 409 && cause.reason == FIELD_CONFLICT);
    fields.map(|cause| FieldConflict { field: cause.field.clone(), message: cause.message.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(code: u16, reason: &str) -> Error {
        let status: Status = serde_json::from_value(json!({
            "status": "Failure", "code": code, "reason": "Conflict", "message": "Apply failed with 1 conflict",
            "details": {"causes": [{"reason": reason, "field": ".data.a", "message": "conflict with \"kubectl-edit\" using v1"}]},
        }))
        .unwrap();
        Error::Api(status.boxed()).into_apply_conflict()
    }

    #[test]
    fn fields_of_other_managers_are_an_error_of_their_own() {
        match error(409, FIELD_CONFLICT) {
            Error::ApplyConflict { fields, status } => {
                assert_eq!(
                    (fields[0].field.as_str(), fields[0].manager()),
                    (".data.a", Some("kubectl-edit"))
                );
                assert_eq!(status.code, 409);
            }
            other => panic!("{other:?}"),
        }
        assert!(error(409, FIELD_CONFLICT).is_conflict());
        for (code, reason) in [(409, "Other"), (422, FIELD_CONFLICT)] {
            assert!(matches!(error(code, reason), Error::Api(_)), "{code} {reason}");
        }
    }

    #[test]
    fn an_apply_is_unforced_and_real_unless_it_says_otherwise() {
        let params = |how: Apply<'_>| {
            let PatchParams { dry_run, force, field_manager, .. } = how.params();
            (dry_run, force, field_manager.unwrap())
        };
        assert_eq!(params(Apply::new("m")), (false, false, "m".to_owned()));
        assert_eq!(params(Apply::new("m").force().dry_run()), (true, true, "m".to_owned()));
    }
}
