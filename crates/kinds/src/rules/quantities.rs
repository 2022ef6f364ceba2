//! Shared validation of quantities.

use model::error::{FieldError, Path};
use quantity::Quantity;

const NEGATIVE: &str = "must be greater than or equal to 0";

/// The error for a negative quantity.
pub fn negative(path: &Path<'_>, amount: &str) -> Option<FieldError> {
    let below = Quantity::parse(amount).is_ok_and(|quantity| quantity.is_negative());
    below.then(|| FieldError::invalid(path, amount, NEGATIVE))
}

/// The error for a quantity that is not positive.
pub fn not_positive(path: &Path<'_>, amount: &str) -> Option<FieldError> {
    let above = Quantity::parse(amount).is_ok_and(|quantity| !quantity.is_negative() && !quantity.is_zero());
    (!above).then(|| FieldError::invalid(path, amount, "must be greater than zero"))
}

/// The error for a negative capacity, which shows whole units.
pub fn bad_amount(path: &Path<'_>, amount: &str) -> Option<FieldError> {
    let below = Quantity::parse(amount).is_ok_and(|quantity| quantity.is_negative());
    below.then(|| {
        let whole = amount.parse::<i64>().unwrap_or(-1);
        FieldError::invalid(path, whole, "must be a valid resource quantity")
    })
}

/// Whether a quantity has a fraction.
pub fn is_fractional(amount: &str) -> bool {
    Quantity::parse(amount).is_ok_and(|quantity| !quantity.is_whole())
}
