//! Formats of UUIDs and of numbers with a checksum.

/// Hexadecimal digits in groups of 8, 4, 4, 4 and 12, with or without dashes, of the given version.
pub fn is_uuid(text: &str, version: Option<char>) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let mut rest = text;
    for (index, length) in GROUPS.into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, behind)) = rest.split_at_checked(length) else { return false };
        let fits = match (index, version) {
            (2, Some(version)) => group.starts_with(version),
            (3, Some('4' | '5')) => group.starts_with(['8', '9', 'a', 'b', 'A', 'B']),
            _ => true,
        };
        if !fits || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

/// `123-45-6789`.
pub fn is_ssn(text: &str) -> bool {
    let is_separator = |byte: u8| byte == b'-' || byte == b' ';
    let fits = |(at, byte): (usize, u8)| match at {
        3 | 6 => is_separator(byte),
        _ => byte.is_ascii_digit(),
    };
    text.len() == 11 && text.bytes().enumerate().all(fits)
}

/// The digits of an ISBN, without white space and dashes.
fn book_digits(text: &str) -> Vec<u8> {
    let is_separator = |byte: &u8| matches!(byte, b'-' | b' ' | b'\t' | b'\n' | b'\x0c' | b'\r');
    text.bytes().filter(|byte| !is_separator(byte)).collect()
}

/// Ten digits with a checksum modulo eleven; the last may be `X` for ten.
pub fn is_isbn10(text: &str) -> bool {
    let digits = book_digits(text);
    let value = |(at, byte): (usize, &u8)| match byte {
        b'X' if at == 9 => Some(10),
        byte if byte.is_ascii_digit() => Some(usize::from(byte - b'0')),
        _ => None,
    };
    let values: Option<Vec<usize>> = digits.iter().enumerate().map(value).collect();
    let sum =
        |values: Vec<usize>| (1..).zip(values).map(|(weight, value): (usize, usize)| weight * value).sum();
    digits.len() == 10 && values.map(sum).is_some_and(|sum: usize| sum.is_multiple_of(11))
}

/// Thirteen digits with a checksum.
pub fn is_isbn13(text: &str) -> bool {
    let digits = book_digits(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let values = digits.iter().map(|byte| usize::from(byte - b'0'));
    let weighted = values.zip([1, 3].into_iter().cycle()).map(|(value, weight)| value * weight);
    weighted.sum::<usize>().is_multiple_of(10)
}

/// The digits of a known card type with a valid checksum; other characters are ignored.
pub fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    is_card_number(&digits) && has_luhn_sum(&digits)
}

fn is_card_number(digits: &str) -> bool {
    let starts = |range: std::ops::RangeInclusive<&str>| {
        digits.get(..range.start().len()).is_some_and(|start| range.contains(&start))
    };
    match digits.len() {
        13 => starts("4"..="4"),
        14 => starts("300"..="305") || starts("36"..="36") || starts("38"..="38"),
        15 => {
            starts("34"..="34") || starts("37"..="37") || starts("2131"..="2131") || starts("1800"..="1800")
        }
        16 => {
            starts("4"..="4")
                || starts("51"..="55")
                || starts("6011"..="6011")
                || starts("65"..="65")
                || starts("35"..="35")
        }
        _ => false,
    }
}

fn has_luhn_sum(digits: &str) -> bool {
    let values = digits.bytes().rev().map(|byte| u32::from(byte - b'0'));
    let counted = values.enumerate().map(|(at, value)| match (at % 2, value * 2) {
        (0, _) => value,
        (_, doubled) if doubled >= 10 => doubled - 9,
        (_, doubled) => doubled,
    });
    counted.sum::<u32>().is_multiple_of(10)
}
