//! Collects the errors of an object, up to a limit.

use model::error::FieldError;

const COUNT_MAX: usize = 1000;
const BYTES_MAX: usize = 1 << 20;

/// Errors with their total size: one long name could be in the paths of very many.
#[derive(Default)]
pub struct Errors {
    list: Vec<FieldError>,
    bytes: usize,
}

impl Errors {
    /// Adds an error.
    pub fn push(&mut self, error: FieldError) {
        self.bytes += error.path.len() + error.detail.len();
        self.list.push(error);
    }

    /// Adds the errors of a nested value.
    pub fn merge(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.list.extend(other.list);
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.list.len() >= COUNT_MAX || self.bytes >= BYTES_MAX
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Removes all errors.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// All errors.
    pub fn into_list(self) -> Vec<FieldError> {
        self.list
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}
