//! Formats of times.

/// `2006-01-02`.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i16>().ok())?
    };
    let parts =
        || Some((number(0..4)?, i8::try_from(number(5..7)?).ok()?, i8::try_from(number(8..10)?).ok()?));
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && parts().is_some_and(|(year, month, day)| jiff::civil::Date::new(year, month, day).is_ok())
}

/// `2006-01-02T15:04:05.000Z`, in upper or lower case.
pub fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(time: &str) -> bool {
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    let fits = |(at, byte): (usize, u8)| if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() };
    let is_clock = clock.bytes().enumerate().all(fits)
        && &clock[..2] <= "23"
        && &clock[3..5] <= "59"
        && &clock[6..] <= "59";
    is_clock && (is_zone(rest) || is_fraction_and_zone(rest))
}

/// Any character, digits, and a time zone.
fn is_fraction_and_zone(text: &str) -> bool {
    let mut characters = text.chars();
    let has_point = characters.next().is_some_and(|c| c != '\n');
    let fraction = characters.as_str();
    let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    has_point && zone.len() < fraction.len() && is_zone(zone)
}

fn is_zone(zone: &str) -> bool {
    let bytes = zone.as_bytes();
    let digits = |at: &[usize]| at.iter().all(|at| bytes[*at].is_ascii_digit());
    zone == "z"
        || (bytes.len() == 6 && b"+-".contains(&bytes[0]) && bytes[3] == b':' && digits(&[1, 2, 4, 5]))
}

/// Numbers with units such as `1h30m`, `22 ns`, `3 days`; at least one.
pub fn is_duration(text: &str) -> bool {
    if matches!(text, "0" | "+0" | "-0") {
        return true;
    }
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = &rest[start..];
        let behind = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = &digits[..digits.len() - behind.len()];
        let spaced = behind.trim_start_matches([' ', '\t', '\n', '\x0c', '\r']);
        let after = spaced.trim_start_matches(|c: char| c.is_ascii_alphabetic() || matches!(c, 'µ' | 'μ'));
        let unit = &spaced[..spaced.len() - after.len()];
        if unit.is_empty() {
            rest = behind;
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&unit.to_lowercase());
        rest = after;
    }
    found
}

fn is_unit(unit: &str) -> bool {
    const SHORT: [&str; 12] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const LONG: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    SHORT.contains(&unit) || LONG.iter().any(|name| unit.starts_with(name))
}
