//! The type metadata of an envelope.

/// `apiVersion` and `kind` of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeMeta<'a> {
    /// For instance `apps/v1`.
    pub api_version: &'a str,
    /// For instance `Deployment`.
    pub kind: &'a str,
}

impl<'a> TypeMeta<'a> {
    /// Unknown type metadata: the envelope must have it.
    pub const UNKNOWN: TypeMeta<'static> = TypeMeta::new("", "");

    /// The metadata of a type.
    pub const fn new(api_version: &'a str, kind: &'a str) -> Self {
        Self { api_version, kind }
    }
}
