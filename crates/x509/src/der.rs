//! A subset of DER for keys, names and certificates: values with a tag of one byte.

/// Tags of ASN.1 types.
pub mod tag {
    /// `BOOLEAN`
    pub const BOOLEAN: u8 = 0x01;
    /// `INTEGER`
    pub const INTEGER: u8 = 0x02;
    /// `BIT STRING`
    pub const BIT_STRING: u8 = 0x03;
    /// `OCTET STRING`
    pub const OCTET_STRING: u8 = 0x04;
    /// `OBJECT IDENTIFIER`
    pub const OID: u8 = 0x06;
    /// `UTF8String`
    pub const UTF8_STRING: u8 = 0x0c;
    /// `PrintableString`
    pub const PRINTABLE_STRING: u8 = 0x13;
    /// `IA5String`
    pub const IA5_STRING: u8 = 0x16;
    /// `UTCTime`
    pub const UTC_TIME: u8 = 0x17;
    /// `GeneralizedTime`
    pub const GENERALIZED_TIME: u8 = 0x18;
    /// `SEQUENCE`
    pub const SEQUENCE: u8 = 0x30;
    /// `SET`
    pub const SET: u8 = 0x31;
}

/// Encodes a value.
#[must_use]
pub fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = Vec::with_capacity(length + 6);
    out.push(tag);
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
            out.push(0x80 | u8::try_from(bytes.len()).expect("a length has eight bytes at most"));
            out.extend(bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

/// Encodes a `SEQUENCE` of encoded values.
#[must_use]
pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(tag::SEQUENCE, &parts.concat())
}

/// Decodes the first value: returns its tag, its content and the remaining bytes. DER allows only the
/// shortest form of a length.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [tag, first, rest @ ..] = bytes else { return None };
    let (length, rest) = match usize::from(*first) {
        short @ 0..=0x7f => (short, rest),
        long @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(long - 0x80)?;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            let is_shortest = digits[0] != 0 && length >= 0x80;
            (Some(length).filter(|_| is_shortest)?, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Decodes the first value if it has this tag: returns its content and the remaining bytes.
#[must_use]
pub fn read_tagged(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    read(bytes).filter(|(found, ..)| *found == tag).map(|(_, content, rest)| (content, rest))
}

/// Whether the bytes have the structure of a signed document: a body, an algorithm and a signature.
#[must_use]
pub fn is_signed(bytes: &[u8]) -> bool {
    let parts = || {
        let (content, []) = read_tagged(tag::SEQUENCE, bytes)? else { return None };
        let (_, rest) = read_tagged(tag::SEQUENCE, content)?;
        let (_, rest) = read_tagged(tag::SEQUENCE, rest)?;
        let (_, rest) = read_tagged(tag::BIT_STRING, rest)?;
        Some(rest.is_empty())
    };
    parts().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_are_decoded_again() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 70_000] {
            let content = vec![7; length];
            let mut written = value(tag::OCTET_STRING, &content);
            written.push(9);
            assert_eq!(read(&written), Some((tag::OCTET_STRING, &content[..], &[9][..])), "{length}");
            assert_eq!(read_tagged(tag::SEQUENCE, &written), None);
        }
    }

    #[test]
    fn lengths_that_are_not_the_shortest_are_refused() {
        for bytes in [
            &[4, 0x81, 1, 0][..],
            &[4, 0x82, 0, 0x80, 0],
            &[4, 0x80, 0, 0],
            &[4, 2, 0],
            &[4],
            &[4, 0x85, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
    }
}
