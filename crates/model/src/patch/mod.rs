//! Being written.

/// Being written.
pub mod json {
    use crate::error::Error;
    use serde_json::Value;
    /// Being written.
    pub fn apply(_document: &mut Value, _patch: &Value) -> Result<(), Error> {
        Err(Error::internal("being written"))
    }
}
/// Being written.
pub mod merge {
    use crate::error::Error;
    use serde_json::Value;
    /// Being written.
    pub fn apply(_document: &mut Value, _patch: &Value) -> Result<(), Error> {
        Err(Error::internal("being written"))
    }
}
