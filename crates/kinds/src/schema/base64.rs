//! Base64 as Go decodes it: line breaks are skipped, trailing bits are ignored, errors name a position.

use ::base64::Engine;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Encodes bytes in the standard alphabet with padding.
pub fn encode(bytes: &[u8]) -> String {
    LENIENT.encode(bytes)
}

/// Decodes a text; the error is the position of the input byte that Go reports.
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    if let Ok(bytes) = LENIENT.decode(text) {
        return Ok(bytes);
    }
    let (bytes, bad) = (text.as_bytes(), first_bad(text.as_bytes()));
    if let Some(bad) = bad {
        return Err(bad);
    }
    let joined: Vec<u8> = bytes.iter().copied().filter(|byte| !is_break(*byte)).collect();
    LENIENT.decode(joined).map_err(|_| 0)
}

fn is_break(byte: u8) -> bool {
    byte == b'\r' || byte == b'\n'
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// The position that Go reports: of an invalid character itself, or of the group of four that lacks one.
fn first_bad(bytes: &[u8]) -> Option<usize> {
    let skip = |mut at: usize| {
        while bytes.get(at).copied().is_some_and(is_break) {
            at += 1;
        }
        at
    };
    let mut in_group = 0;
    let mut at = skip(0);
    while let Some(byte) = bytes.get(at).copied() {
        if is_digit(byte) {
            in_group = (in_group + 1) % 4;
            at = skip(at + 1);
            continue;
        }
        if byte != b'=' || in_group < 2 {
            return Some(at);
        }
        if in_group == 2 {
            let second = skip(at + 1);
            match bytes.get(second) {
                None => return Some(bytes.len()),
                Some(b'=') => at = second,
                Some(_) => return Some(second - 1),
            }
        }
        let rest = skip(at + 1);
        return (rest < bytes.len()).then_some(rest);
    }
    (in_group != 0).then(|| at - in_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_that_kube_apiserver_reports() {
        for (text, bad) in [
            ("!!!", 0),
            ("YQ", 0),
            ("aGVs bG8=", 4),
            ("aGVsbG8=x", 8),
            ("aGVsbG8", 4),
            ("_-A=", 0),
            ("YQ==YQ==", 4),
            ("Y===", 1),
            ("YQ====", 4),
            ("YQ=a", 2),
            ("YWFhYQ=", 7),
            ("YWFhY", 4),
            ("YWFh\u{e9}", 4),
        ] {
            assert_eq!(decode(text), Err(bad), "{text:?}");
        }
    }

    #[test]
    fn line_breaks_and_stray_bits_are_ignored() {
        for (text, canonical) in [
            ("", ""),
            ("YR==", "YQ=="),
            ("YQ=\n=", "YQ=="),
            ("YWFh\r\nYQ==\n", "YWFhYQ=="),
            ("aGVsbG8=", "aGVsbG8="),
        ] {
            assert_eq!(decode(text).map(|bytes| encode(&bytes)), Ok(canonical.to_owned()), "{text:?}");
        }
    }
}
