//! The store's clock: one 64-bit number per database that only ever grows.

use std::fmt;
use std::str::FromStr;

/// A point on the store's clock. As text it is the `resourceVersion` that clients see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// Before every change: no object ever has it.
    pub const ZERO: Self = Self(0);

    /// The revision that follows this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not a `resourceVersion` that this server could have returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number without sign")]
pub struct ParseRevisionError;

impl FromStr for Revision {
    type Err = ParseRevisionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseRevisionError);
        }
        text.parse().map(Self).map_err(|_| ParseRevisionError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_decimal_numbers_are_revisions() {
        assert_eq!("42".parse(), Ok(Revision(42)));
        for bad in ["", "-1", "+1", "0x1", "1.0", " 1", "99999999999999999999"] {
            assert_eq!(bad.parse::<Revision>(), Err(ParseRevisionError), "{bad:?}");
        }
    }
}
