//! Private keys in PEM.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use x509::pem;

const PKCS8: &str = "PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";

/// The first unencrypted private key of a PEM text.
pub(crate) fn private_key(text: &[u8]) -> Option<PrivateKeyDer<'static>> {
    let mut blocks = pem::blocks(text).filter_map(Result::ok).filter(|block| !block.has_headers);
    blocks.find_map(|block| match block.label {
        PKCS8 => Some(PrivatePkcs8KeyDer::from(block.contents).into()),
        PKCS1 => Some(PrivatePkcs1KeyDer::from(block.contents).into()),
        SEC1 => Some(PrivateSec1KeyDer::from(block.contents).into()),
        _ => None,
    })
}

/// Encodes a PKCS #8 key as PEM.
pub(crate) fn encode(pkcs8: &[u8]) -> String {
    pem::encode(PKCS8, pkcs8)
}
