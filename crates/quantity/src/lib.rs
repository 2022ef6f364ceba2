//! Kubernetes resource quantities such as `100m` and `2Gi`: parsing, comparison and canonical form.

use std::{borrow::Cow, cmp::Ordering, fmt};

/// The reason why a text is no quantity, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number is missing.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

/// A quantity. Quantities of the same value are equal, whatever their format.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    negative: bool,
    /// Has no trailing zeros. Numbers of 38 digits and more saturate.
    mantissa: u128,
    /// The mantissa is multiplied by ten to the power of this.
    exponent: i32,
    format: Format,
}

/// The format of a quantity's text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `5Ki`
    Binary,
    /// `5k`
    Decimal,
    /// `5e3`
    Exponent,
}

/// The digits of a quantity as written or summed: `value` times ten to the power of `scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The integer of all digits.
    pub value: i64,
    /// The power of ten.
    pub scale: i32,
}

impl Digits {
    /// The sum, or `None` on overflow.
    pub fn plus(self, other: Self) -> Option<Self> {
        if other.value == 0 || self.value == 0 {
            return Some(if other.value == 0 { self } else { other });
        }
        let scale = self.scale.min(other.scale);
        let value = self.scaled(scale)?.checked_add(other.scaled(scale)?)?;
        Some(Self { value, scale })
    }

    /// The negated value, or `None` on overflow.
    pub fn negated(self) -> Option<Self> {
        Some(Self { value: self.value.checked_neg()?, scale: self.scale })
    }

    /// The integer, or `None` if there are digits behind the decimal point, even zeros.
    pub fn integer(self) -> Option<i64> {
        if self.scale < 0 { None } else { self.scaled(0) }
    }

    fn scaled(self, scale: i32) -> Option<i64> {
        self.value.checked_mul(10i64.checked_pow(self.scale.abs_diff(scale))?)
    }
}

const DECIMAL: [(&str, i32); 10] =
    [("", 0), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("u", -6), ("n", -9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The smallest unit of a quantity is a billionth.
const EXPONENT_MIN: i32 = -9;
/// The smallest unit of a resource amount is a thousandth.
const RESOURCE_EXPONENT_MIN: i32 = -3;
/// The largest quantity in binary format.
const BINARY_MAX: u128 = i64::MAX as u128;

impl Quantity {
    /// Parses a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        Self::read(text).map(|(quantity, ..)| quantity)
    }

    /// Parses a quantity. Also returns its digits if they are few enough for Kubernetes' 64-bit arithmetic.
    pub fn parse_digits(text: &str) -> Result<(Self, Option<Digits>), QuantityError> {
        Self::read(text).map(|(quantity, _, digits)| (quantity, digits))
    }

    /// The text that Kubernetes stores for a quantity: the given text if Kubernetes keeps it as it is, else
    /// the canonical form.
    pub fn respell(text: &str) -> Result<Cow<'_, str>, QuantityError> {
        let text = text.trim();
        let (quantity, is_kept, _) = Self::read(text)?;
        Ok(if is_kept { Cow::Borrowed(text) } else { Cow::Owned(quantity.to_string()) })
    }

    /// Like [`Quantity::respell`] for an amount of a resource, which is rounded up to thousandths.
    pub fn respell_resource(text: &str) -> Result<Cow<'_, str>, QuantityError> {
        let (quantity, is_kept, _) = Self::read(text)?;
        if is_kept && quantity.exponent >= RESOURCE_EXPONENT_MIN {
            return Ok(Cow::Borrowed(text));
        }
        Ok(Cow::Owned(quantity.rounded_up(RESOURCE_EXPONENT_MIN).to_string()))
    }

    /// The sum of two quantities, in the format of the first unless that is zero.
    pub fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let aligned = |of: &Self| {
            let factor = 10i128.saturating_pow(of.exponent.abs_diff(exponent));
            let mantissa = i128::try_from(of.mantissa).unwrap_or(i128::MAX).saturating_mul(factor);
            if of.negative { -mantissa } else { mantissa }
        };
        let sum = aligned(self).saturating_add(aligned(other));
        let format = if self.is_zero() { other.format } else { self.format };
        Self::new(sum < 0, sum.unsigned_abs(), exponent, format)
    }

    /// The negated quantity.
    pub fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..*self }
    }

    /// Rounds away from zero to a power of ten.
    fn rounded_up(self, exponent: i32) -> Self {
        if self.exponent >= exponent {
            return self;
        }
        let divisor = 10u128.checked_pow(exponent.abs_diff(self.exponent)).unwrap_or(u128::MAX);
        Self::new(self.negative, self.mantissa.div_ceil(divisor), exponent, self.format)
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// Whether the value is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether the value is an integer.
    pub fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    /// The nearest floating-point number.
    #[expect(clippy::cast_precision_loss, reason = "the nearest number is what is asked for")]
    pub fn to_f64(&self) -> f64 {
        let size = self.mantissa as f64 * 10f64.powi(self.exponent);
        if self.negative { -size } else { size }
    }

    /// Parses a quantity. Also returns whether Kubernetes keeps the text as it is, and the digits if they are
    /// few.
    fn read(text: &str) -> Result<(Self, bool, Option<Digits>), QuantityError> {
        let parts = Parts::split(text)?;
        let (format, power) = unit(parts.suffix).ok_or(QuantityError::Suffix)?;
        let digits = parts.whole.bytes().chain(parts.fraction.bytes());
        let mantissa =
            digits.fold(0u128, |sum, digit| sum.saturating_mul(10).saturating_add(u128::from(digit - b'0')));
        let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
        let count = i32::try_from(parts.whole.len() + parts.fraction.len()).unwrap_or(i32::MAX);
        let scale = power.saturating_sub(places);
        let is_binary = format == Format::Binary;
        let is_short = match is_binary {
            true => places == 0 && 14 - count - power * 3 / 10 >= 0,
            false => count <= 18 && scale >= EXPONENT_MIN,
        };
        if !is_short && !parts.has_digits {
            return Err(QuantityError::Number);
        }
        let is_kept = is_short
            && match is_binary {
                true => mantissa & 7 != 0,
                false => mantissa != 0 && scale % 3 == 0 && !parts.ends_in_thousands() && parts.whole != "0",
            };
        let scaled = match is_binary {
            true => {
                Self::new(parts.is_negative, mantissa.saturating_mul(1 << power), -places, format).capped()
            }
            false => Self::new(parts.is_negative, mantissa, scale, format),
        };
        let digits = is_short.then(|| parts.digits(mantissa, is_binary.then_some(power), scale)).flatten();
        Ok((scaled, is_kept || text == "0", digits))
    }

    /// Rounds away from zero to billionths and removes trailing zeros.
    fn new(negative: bool, mut mantissa: u128, mut exponent: i32, format: Format) -> Self {
        if exponent < EXPONENT_MIN {
            let divisor = 10u128.checked_pow(EXPONENT_MIN.abs_diff(exponent)).unwrap_or(u128::MAX);
            mantissa = mantissa.div_ceil(divisor);
            exponent = EXPONENT_MIN;
        }
        if mantissa == 0 {
            return Self { negative: false, mantissa, exponent: 0, format };
        }
        while mantissa.is_multiple_of(10) {
            mantissa /= 10;
            exponent = exponent.saturating_add(1);
        }
        Self { negative, mantissa, exponent, format }
    }

    /// Saturates at the largest quantity in binary format.
    fn capped(self) -> Self {
        let max = Self::new(self.negative, BINARY_MAX, 0, Format::Binary);
        match self.magnitude(&max) {
            Ordering::Greater => max,
            _ => self,
        }
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        let digits =
            |of: &Self| i64::from(of.mantissa.checked_ilog10().unwrap_or(0)) + i64::from(of.exponent);
        let zero = |of: &Self| of.mantissa == 0;
        let order = zero(other).cmp(&zero(self)).then_with(|| digits(self).cmp(&digits(other)));
        order.then_with(|| {
            // Both have the same number of digits before the decimal point, so the alignment cannot overflow
            // a mantissa.
            let common = self.exponent.min(other.exponent);
            let aligned =
                |of: &Self| of.mantissa.saturating_mul(10u128.saturating_pow(of.exponent.abs_diff(common)));
            aligned(self).cmp(&aligned(other))
        })
    }

    /// The integer, or `None` if it is none or has more than 38 digits.
    pub fn whole(&self) -> Option<u128> {
        let exponent = u32::try_from(self.exponent).ok()?;
        self.mantissa.checked_mul(10u128.checked_pow(exponent)?)
    }
}

/// An integer, formatted with an exponent.
impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self::new(number < 0, number.unsigned_abs().into(), 0, Format::Exponent)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        if self.format == Format::Binary
            && let Some(mut whole) = self.whole().filter(|whole| *whole >= 1024)
        {
            let mut power = 0;
            while whole.is_multiple_of(1024) {
                whole /= 1024;
                power += 10;
            }
            let unit = BINARY.iter().find(|(_, of)| *of == power).map_or("", |(unit, _)| unit);
            return write!(f, "{whole}{unit}");
        }
        let zeros = self.exponent.rem_euclid(3);
        let (number, power) =
            (self.mantissa.saturating_mul(10u128.pow(zeros.unsigned_abs())), self.exponent - zeros);
        match self.format {
            Format::Exponent if power == 0 => write!(f, "{number}"),
            Format::Exponent => write!(f, "{number}e{power}"),
            Format::Binary | Format::Decimal => {
                let unit = DECIMAL.iter().find(|(_, of)| *of == power).map_or("", |(unit, _)| unit);
                write!(f, "{number}{unit}")
            }
        }
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (self_negative, other_negative) => other_negative.cmp(&self_negative),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

/// The format and the power (of two or ten) of a suffix.
fn unit(suffix: &str) -> Option<(Format, i32)> {
    let find =
        |units: &[(&str, i32)]| units.iter().find(|(unit, _)| *unit == suffix).map(|(_, power)| *power);
    if let Some(power) = find(&DECIMAL) {
        return Some((Format::Decimal, power));
    }
    if let Some(power) = find(&BINARY) {
        return Some((Format::Binary, power));
    }
    let power = suffix.strip_prefix(['e', 'E'])?;
    power.parse().ok().map(|power| (Format::Exponent, power))
}

/// The components of a quantity's text.
struct Parts<'a> {
    is_negative: bool,
    has_digits: bool,
    /// Has no leading zeros, except a single zero.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = unsigned.split_at(digits(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        let power = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let power = power.strip_prefix(['+', '-']).unwrap_or(power);
        if digits(power) != power.len() {
            return Err(QuantityError::Format);
        }
        let significant = whole.trim_start_matches('0');
        Ok(Self {
            is_negative: text.starts_with('-'),
            has_digits: !(whole.is_empty() && fraction.is_empty()),
            whole: if significant.is_empty() { "0" } else { significant },
            fraction,
            suffix,
        })
    }

    /// The digits times a power of two, or with a power of ten as the scale.
    fn digits(&self, mantissa: u128, binary: Option<i32>, scale: i32) -> Option<Digits> {
        let value = i64::try_from(mantissa << binary.unwrap_or(0)).ok()?;
        let value = if self.is_negative { -value } else { value };
        Some(Digits { value, scale: if binary.is_some() { 0 } else { scale } })
    }

    fn ends_in_thousands(&self) -> bool {
        let zeros = |text: &str| text.bytes().rev().take_while(|byte| *byte == b'0').count();
        let fraction = zeros(self.fraction);
        fraction >= 3 || (fraction == self.fraction.len() && fraction + zeros(self.whole) >= 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_canonical_form_of_kubernetes() {
        for (given, spelled) in [
            ("0", "0"),
            ("-0", "0"),
            ("Ki", "0"),
            (".5", "500m"),
            ("5.", "5."),
            ("1.500", "1.500"),
            ("1.5", "1500m"),
            ("+5", "+5"),
            ("05Ki", "05Ki"),
            (" 5 ", "5"),
            ("1000", "1k"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1000E", "1"),
            ("10000000000000000000", "10E"),
            ("1E", "1E"),
            ("1e30", "1e30"),
            ("100e1", "1e3"),
            ("1e-12", "1e-9"),
            ("0.0000000001", "1n"),
            ("1024Ki", "1Mi"),
            ("1023Ki", "1023Ki"),
            ("1.5Ki", "1536"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("-1.5Gi", "-1536Mi"),
            ("8Ei", "9223372036854775807"),
        ] {
            assert_eq!(Quantity::respell(given).as_deref(), Ok(spelled), "{given}");
        }
    }

    #[test]
    fn resources_are_rounded_up_to_thousandths() {
        for (given, spelled) in
            [("100.5m", "101m"), ("1n", "1m"), ("0.1Ki", "102400m"), ("1.500", "1.500"), ("-100.5m", "-101m")]
        {
            assert_eq!(Quantity::respell_resource(given).as_deref(), Ok(spelled), "{given}");
        }
        let sum = |one: &str, other: &str| {
            Quantity::parse(one).unwrap().plus(&Quantity::parse(other).unwrap()).to_string()
        };
        assert_eq!(sum("1Gi", "512Mi"), "1536Mi");
        assert_eq!(sum("0", "1e3"), "1e3");
        assert_eq!(sum("500m", "-1"), "-500m");
    }

    #[test]
    fn digits_are_integers_only_if_written_so() {
        let digits = |text: &str| Quantity::parse_digits(text).unwrap().1;
        for (text, integer) in [
            ("50k", Some(50_000)),
            ("-1Ki", Some(-1024)),
            ("1.0", None),
            ("1000m", None),
            ("1.5k", Some(1500)),
            ("9223372036854775807", None),
            ("99999999999999999", Some(99_999_999_999_999_999)),
            ("9999999999999G", None),
            ("1.5Ki", None),
        ] {
            assert_eq!(digits(text).and_then(Digits::integer), integer, "{text}");
        }
        let sum = digits("1k").unwrap().plus(digits("1").unwrap().negated().unwrap()).unwrap();
        assert_eq!(sum.integer(), Some(999));
        assert_eq!(digits("1.5").unwrap().plus(digits("1.5").unwrap()).unwrap().integer(), None);
        assert_eq!(Quantity::from(-5).negated(), Quantity::from(5));
    }

    #[test]
    fn malformed_quantities_are_refused() {
        use QuantityError::{Format, Number, Suffix};
        for (given, problem) in [
            ("", Format),
            ("x", Format),
            ("1 Ki", Format),
            ("1.5.5", Format),
            ("1K", Suffix),
            ("1e", Suffix),
            ("Ei", Number),
        ] {
            assert_eq!(Quantity::parse(given), Err(problem), "{given}");
        }
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let sorted = [
            "-1Ki", "-1", "0", "1n", "1m", "1", "1023", "1Ki", "1.1k", "1M", "1Mi", "1Ei", "1e30", "2e30",
            "1e999",
        ];
        let parse = |text: &str| Quantity::parse(text).unwrap();
        for (at, less) in sorted.iter().enumerate() {
            for more in &sorted[at + 1..] {
                assert!(parse(less) < parse(more) && parse(more) > parse(less), "{less} {more}");
            }
        }
        assert_eq!(parse("1000m"), parse("1"));
        assert_eq!(parse("1Ki"), parse("1.024k"));
        assert!(parse("1.0").is_whole() && !parse("1.5").is_whole() && parse("-1").is_negative());
    }
}
