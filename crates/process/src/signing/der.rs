//! DER encodings of public and private keys.

use x509::der::{read_tagged, sequence, tag, value};

/// The `AlgorithmIdentifier` content of `rsaEncryption`, whose parameters are NULL.
pub(super) const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// `ecPublicKey` of the curve P-256.
pub(super) const P256: &[u8] = &[
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07,
];
/// `ecPublicKey` of the curve P-384.
pub(super) const P384: &[u8] =
    &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];

/// Encodes a `SubjectPublicKeyInfo`.
pub(super) fn spki(identifier: &[u8], key: &[u8]) -> Vec<u8> {
    let bits = [&[0], key].concat();
    sequence(&[&value(tag::SEQUENCE, identifier), &value(tag::BIT_STRING, &bits)])
}

/// Encodes an ECDSA private key as PKCS #8.
pub(super) fn pkcs8(identifier: &[u8], key: &[u8]) -> Vec<u8> {
    sequence(&[&value(tag::INTEGER, &[0]), &value(tag::SEQUENCE, identifier), &value(tag::OCTET_STRING, key)])
}

/// The algorithm identifier and the key of a `SubjectPublicKeyInfo`.
pub(super) fn read_spki(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (key, _) = read_tagged(tag::SEQUENCE, der)?;
    let (identifier, rest) = read_tagged(tag::SEQUENCE, key)?;
    let (bits, _) = read_tagged(tag::BIT_STRING, rest)?;
    Some((identifier, bits.strip_prefix(&[0])?))
}

/// Modulus and exponent of an `RSAPublicKey`.
pub(super) fn read_rsa(der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (key, _) = read_tagged(tag::SEQUENCE, der)?;
    let (n, rest) = read_tagged(tag::INTEGER, key)?;
    let (e, _) = read_tagged(tag::INTEGER, rest)?;
    let number = |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    Some((number(n), number(e)))
}
