//! Certificates and requests for them as text. What is in them is looked at only from outside: keys and signatures would
//! take cryptography.

use crate::error::{FieldError, Path};
use crate::schema::decode_base64;

const CERTIFICATE: &str = "CERTIFICATE";
const REQUEST: &str = "CERTIFICATE REQUEST";
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// What is between two lines of dashes.
struct Block<'a> {
    label: &'a str,
    has_headers: bool,
    bytes: Vec<u8>,
}

/// Why the text does not begin with a request for a certificate.
pub fn bad_request(text: &str) -> Option<&'static str> {
    match next_block(text) {
        Some((Block { label: REQUEST, bytes, .. }, _)) if is_signed(&bytes) => None,
        Some((Block { label: REQUEST, .. }, _)) => Some("asn1: structure error: tags don't match"),
        _ => Some("PEM block type must be CERTIFICATE REQUEST"),
    }
}

/// Why the text is not a chain of certificates.
pub fn bad_certificates(text: &str) -> Option<String> {
    let mut rest = text;
    let mut count = 0;
    while let Some((block, behind)) = next_block(rest) {
        if block.label != CERTIFICATE {
            let found = crate::error::quote(block.label);
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        if !is_signed(&block.bytes) {
            return Some("x509: malformed certificate".to_owned());
        }
        (count, rest) = (count + 1, behind);
    }
    (count == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

/// Why base64 is not that of certificates to trust.
pub fn bad_bundle(path: &Path<'_>, bundle: &str) -> Option<FieldError> {
    let bytes = decode_base64(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut rest = &*text;
    while let Some((block, behind)) = next_block(rest) {
        if block.label == CERTIFICATE && is_signed(&block.bytes) {
            return None;
        }
        rest = behind;
    }
    let problem = "unable to load root certificates: unable to parse bytes as PEM block";
    (!bundle.is_empty()).then(|| FieldError::invalid(path, bundle, problem))
}

/// The first block of a text, and what is behind it.
fn next_block(text: &str) -> Option<(Block<'_>, &str)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (inside, behind) = rest.split_once(&format!("-----END {label}-----"))?;
    let has_headers = inside.contains(':');
    let body = if has_headers { inside.split_once("\n\n").map_or("", |(_, body)| body) } else { inside };
    let compact: String = body.split_ascii_whitespace().collect();
    let bytes = decode_base64(&compact).ok()?;
    Some((Block { label, has_headers, bytes }, behind))
}

/// Whether it is what all signed things are: a body, an algorithm and a signature.
fn is_signed(bytes: &[u8]) -> bool {
    let Some((SEQUENCE, content, [])) = element(bytes) else { return false };
    let Some((SEQUENCE, _, rest)) = element(content) else { return false };
    let Some((SEQUENCE, _, rest)) = element(rest) else { return false };
    matches!(element(rest), Some((BIT_STRING, _, [])))
}

/// The tag and the content of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short if short < 0x80 => (short, rest),
        long @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(long - 0x80)?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}
