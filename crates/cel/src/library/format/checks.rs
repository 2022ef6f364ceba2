//! Formats other than names: UUID, base64, date and date-time.

use base64::Engine;

/// 32 hexadecimal digits, with or without dashes at the usual places.
pub(super) fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (index, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        match rest.split_at_checked(len) {
            Some((digits, behind)) if digits.iter().all(u8::is_ascii_hexdigit) => rest = behind,
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Non-empty base64 with padding.
pub(super) fn is_base64(text: &str) -> bool {
    let lenient = base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    !text.is_empty() && engine.decode(text).is_ok()
}

/// A date such as `2006-01-02`.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |index: &usize| bytes[*index].is_ascii_digit();
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && [0, 1, 2, 3, 5, 6, 8, 9].iter().all(is_digit)
        && is_day(number(&bytes[..4]), number(&bytes[5..7]), number(&bytes[8..]))
}

fn is_day(year: u32, month: u32, day: u32) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

/// A date-time with a zone, such as `2006-01-02T15:04:05Z`.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let clock = clock.as_bytes();
    let is_clock = clock.iter().enumerate().all(|(index, byte)| match index {
        2 | 5 => *byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let is_in_range = is_clock && &clock[..2] <= b"23" && &clock[3..5] <= b"59" && &clock[6..] <= b"59";
    is_in_range && (is_zone(rest) || without_fraction(rest).is_some_and(is_zone))
}

/// Skips the fraction of a second, whose separator may be any character.
fn without_fraction(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    chars.next().filter(|c| *c != '\n')?;
    let rest = chars.as_str();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &rest[digits..])
}

fn is_zone(text: &str) -> bool {
    let is_offset = |bytes: &[u8]| {
        bytes.len() == 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].iter().all(|index| bytes[*index].is_ascii_digit())
    };
    text == "z" || is_offset(text.as_bytes())
}
