//! What is wrong with an object, as long as there is any use in saying more.

use model::error::FieldError;

const COUNT_MAX: usize = 1000;
const BYTES_MAX: usize = 1 << 20;

/// Errors, and how much there is of them: one long name could be in the path of very many.
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

    /// Adds those of a part.
    pub fn merge(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.list.extend(other.list);
    }

    /// Whether nobody needs more.
    pub fn is_full(&self) -> bool {
        self.list.len() >= COUNT_MAX || self.bytes >= BYTES_MAX
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// All of them.
    pub fn into_list(self) -> Vec<FieldError> {
        self.list
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}
