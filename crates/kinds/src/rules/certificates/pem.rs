//! Validation of fields that hold PEM: certificate signing requests, certificates and CA bundles.

use model::error::{FieldError, Path};
use x509::{CertificateRequest, der, pem};

use crate::schema::decode_base64;

/// The reason why bytes are not a certificate signing request. The signer verifies the signature.
pub fn bad_request(text: &[u8]) -> Option<String> {
    CertificateRequest::from_pem(text).err().map(|error| error.to_string())
}

/// The reason why bytes are not a certificate chain. Like Go, it skips malformed blocks.
pub fn bad_certificates(text: &[u8]) -> Option<String> {
    let mut count = 0;
    for block in pem::blocks(text).flatten() {
        if block.label != pem::CERTIFICATE {
            let found = model::error::quote(block.label);
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        if !der::is_signed(&block.contents) {
            return Some("x509: malformed certificate".to_owned());
        }
        count += 1;
    }
    (count == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

/// The reason why base64 is not a CA bundle.
pub fn bad_bundle(path: &Path<'_>, bundle: &str) -> Option<FieldError> {
    let bytes = decode_base64(bundle).unwrap_or_default();
    let has_one = pem::blocks(&bytes)
        .flatten()
        .any(|block| block.label == pem::CERTIFICATE && der::is_signed(&block.contents));
    let problem = "unable to load root certificates: unable to parse bytes as PEM block";
    (!has_one && !bundle.is_empty()).then(|| FieldError::invalid(path, bundle, problem))
}
