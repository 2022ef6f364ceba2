//! As much of DER as public keys need.

/// `rsaEncryption`, with the parameters that it has: none.
pub(super) const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// `ecPublicKey` of the curve P-256.
pub(super) const P256: &[u8] = &[
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07,
];
/// `ecPublicKey` of the curve P-384.
pub(super) const P384: &[u8] =
    &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// A public key as X.509 has it.
pub(super) fn spki(identifier: &[u8], key: &[u8]) -> Vec<u8> {
    let bits = [&[0], key].concat();
    value(SEQUENCE, &[value(SEQUENCE, identifier), value(BIT_STRING, &bits)].concat())
}

/// A private key of a curve, as PKCS #8 has it.
pub(super) fn pkcs8(identifier: &[u8], key: &[u8]) -> Vec<u8> {
    let parts = [value(INTEGER, &[0]), value(SEQUENCE, identifier), value(OCTET_STRING, key)];
    value(SEQUENCE, &parts.concat())
}

fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            out.push(0x80 | u8::try_from(bytes.len()).unwrap_or_default());
            out.extend(bytes);
        }
    }
    out.extend(content);
    out
}

/// Identifier and key of a public key as X.509 has it.
pub(super) fn read_spki(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (key, _) = read(SEQUENCE, der)?;
    let (identifier, rest) = read(SEQUENCE, key)?;
    let (bits, _) = read(BIT_STRING, rest)?;
    Some((identifier, bits.strip_prefix(&[0])?))
}

/// Modulus and exponent of an `RSAPublicKey`.
pub(super) fn read_rsa(der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (key, _) = read(SEQUENCE, der)?;
    let (n, rest) = read(INTEGER, key)?;
    let (e, _) = read(INTEGER, rest)?;
    let number = |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    Some((number(n), number(e)))
}

/// The content of a value with this tag, and what stands behind it.
fn read(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let [first, length, rest @ ..] = der else { return None };
    if *first != tag {
        return None;
    }
    let (length, rest) = if *length < 0x80 {
        (usize::from(*length), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
        let whole =
            bytes.iter().try_fold(0usize, |sum, byte| Some(sum.checked_mul(256)? | usize::from(*byte)));
        (whole?, rest)
    };
    rest.split_at_checked(length)
}
