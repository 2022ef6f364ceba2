//! TLS to PostgreSQL, as libpq's `sslmode` means it.
//!
//! `require` without `sslrootcert` encrypts and does not verify: it protects against eavesdropping, not
//! against a man in the middle. Every other PostgreSQL client does the same, so an address means the same
//! here as there; `verify-full` is the safe choice.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use x509::pem;

use crate::types::Error;

/// Extent of the verification of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing: encryption alone.
    Nothing,
    /// A trusted CA signed it (`verify-ca`).
    Chain,
    /// Also, it names the host of the address (`verify-full`).
    ChainAndName,
}

/// Encryption without verification.
pub fn unchecked() -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Lenient { chain: None, provider: Arc::clone(&provider) });
    build(provider, verifier)
}

/// Encryption with a server whose certificate was signed by a CA in a PEM file.
pub fn checked(roots: &Path, check: Check) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let chain =
        WebPkiServerVerifier::builder_with_provider(Arc::new(authorities(roots)?), Arc::clone(&provider))
            .build()
            .map_err(|error| unusable(roots, &error))?;
    if check == Check::ChainAndName {
        return build(provider, chain);
    }
    let verifier = Arc::new(Lenient { chain: Some(chain), provider: Arc::clone(&provider) });
    build(provider, verifier)
}

fn build(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Open { reason: format!("TLS cannot be set up: {error}") })?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn authorities(file: &Path) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    let text = std::fs::read(file).map_err(|error| unusable(file, &error))?;
    for block in pem::blocks(&text) {
        let block = block.map_err(|error| unusable(file, &error))?;
        if block.label == pem::CERTIFICATE {
            store.add(block.contents.into()).map_err(|error| unusable(file, &error))?;
        }
    }
    Ok(store)
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Open {
        reason: format!(
            "the certificate authorities in {} cannot be used ({error}): name a PEM file in sslrootcert",
            file.display()
        ),
    }
}

/// Verifies less than WebPKI does.
#[derive(Debug)]
struct Lenient {
    /// Verifies the chain, if it is checked at all.
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last, after the chain.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
