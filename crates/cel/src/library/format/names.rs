//! What the named formats accept, and what Kubernetes says of the rest.

use std::borrow::Cow;

use base64::Engine;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// A name of DNS without dots.
pub(super) fn dns_1123_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, 63, "characters");
    if !is_label(text) {
        problems.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character",
                LABEL,
                "'my-name',  or '123-abc', ",
            )
        });
    }
    problems
}

/// A name of DNS.
pub(super) fn dns_1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut problems = too_long(text, 253, unit);
    if !is_subdomain(text) {
        problems.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character",
            &format!("{LABEL}(\\.{LABEL})*"),
            "'example.com', ",
        ));
    }
    problems
}

/// A name of DNS without dots that begins with a letter.
pub(super) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, 63, "characters");
    if !(is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        problems.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            "'my-name',  or 'abc-123', ",
        ));
    }
    problems
}

const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// The key of a label.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let wrong = || {
        pattern(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character",
            KEY,
            "'MyName',  or 'my.name',  or '123-abc', ",
        )
    };
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if name.contains('/') {
        let form = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
        return vec![format!("a valid label key {} {form}", wrong())];
    }
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems.extend(
                subdomain(prefix, "bytes").into_iter().map(|problem| format!("prefix part {problem}")),
            );
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(too_long(name, 63, "bytes").into_iter().map(|problem| format!("name part {problem}")));
    if !is_key(name) {
        problems.push(format!("name part {}", wrong()));
    }
    problems
}

/// The value of a label.
pub(super) fn label_value(text: &str) -> Vec<String> {
    let mut problems = too_long(text, 63, "bytes");
    if !(text.is_empty() || is_key(text)) {
        problems.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({KEY})?"),
            "'MyValue',  or 'my_value',  or '12345', ",
        ));
    }
    problems
}

/// A prefix of a name may end in a dash.
pub(super) fn without_last_dash(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('-') {
        // The character before the dash goes too, whatever it is.
        Some(rest) if !rest.is_empty() => {
            let kept = &rest.as_bytes()[..rest.len() - 1];
            Cow::Owned(format!("{}a", String::from_utf8_lossy(kept)))
        }
        _ => Cow::Borrowed(text),
    }
}

fn too_long(text: &str, max: usize, unit: &str) -> Vec<String> {
    if text.len() > max { vec![format!("must be no more than {max} {unit}")] } else { Vec::new() }
}

fn pattern(rule: &str, pattern: &str, examples: &str) -> String {
    format!("{rule} (e.g. {examples}regex used for validation is '{pattern}')")
}

fn is_label(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    let is_inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inner)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let is_inner = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inner)
}

/// 32 hexadecimal digits, with or without dashes at their places.
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

/// Base 64 with padding, and not nothing.
pub(super) fn is_base64(text: &str) -> bool {
    let lenient = base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    !text.is_empty() && engine.decode(text).is_ok()
}

/// A day, as `2006-01-02`.
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

/// A day and a time with a zone, as `2006-01-02T15:04:05Z`.
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

/// What follows any character and digits, as few or as many as a zone leaves.
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
