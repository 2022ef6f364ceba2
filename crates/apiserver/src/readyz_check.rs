//! A check of `/readyz` that the user of the library adds.

/// A named check.
pub(crate) struct ReadyzCheck {
    /// The name, such as `role/delivery`.
    pub(crate) name: String,
    /// Returns the reason why the check fails. It must not block.
    pub(crate) check: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}
