//! Certificates of clients: taken unseen in the handshake, judged by the authenticator.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use thiserror::Error;
use x509_parser::{der_parser::oid, prelude::X509Certificate};

use super::{certificates, provider};

/// Whom a client's certificate names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertIdentity {
    /// The subject's CN: the user's name. Never empty.
    pub common_name: String,
    /// The subject's Os, in their order: the user's groups.
    pub organizations: Vec<String>,
    /// The user's uid, for which Kubernetes has an attribute type of its own.
    pub uid: Option<String>,
    /// SHA-256 of the certificate, in lower-case hexadecimal: what Kubernetes calls the credential's id.
    pub fingerprint: String,
    /// The end of the certificate's validity: until then an answer can be kept for the connection.
    pub valid_until: UnixTime,
}

/// Why a certificate names nobody.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The client showed none.
    #[error("no certificate was shown")]
    Absent,
    /// There is no authority to trust it by.
    #[error("no authority of client certificates is trusted")]
    NoAuthority,
    /// It is not from a trusted authority, not valid at this time, or not meant for clients.
    #[error("the certificate is not trusted: {0}")]
    Untrusted(String),
    /// It is trusted, but its subject cannot be a user.
    #[error("the certificate's subject is no user: {0}")]
    Nameless(&'static str),
}

/// Judges clients' certificates by a bundle of authorities.
#[derive(Clone, Debug)]
pub struct ClientCaVerifier {
    /// None where no authority is trusted.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl ClientCaVerifier {
    /// Trusts no authority: no certificate names anybody.
    #[must_use]
    pub fn nobody() -> Self {
        Self { verifier: None }
    }

    /// Trusts the authorities of a PEM bundle.
    ///
    /// # Errors
    /// When the bundle is no PEM, or has no certificate that can be an authority.
    pub fn from_pem(bundle: &[u8]) -> Result<Self, super::Error> {
        const WHAT: &str = "the bundle of client authorities";
        let unusable = |reason: String| super::Error::Unusable { what: WHAT, reason };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(WHAT, bundle)? {
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self { verifier: Some(verifier) })
    }

    /// Says whom the chain names, the client's own certificate first, at this moment.
    ///
    /// # Errors
    /// The reason why it names nobody.
    pub fn verify(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<CertIdentity, Refusal> {
        let (own, intermediates) = chain.split_first().ok_or(Refusal::Absent)?;
        let verifier = self.verifier.as_ref().ok_or(Refusal::NoAuthority)?;
        verifier
            .verify_client_cert(own, intermediates, now)
            .map_err(|error| Refusal::Untrusted(error.to_string()))?;
        let (_, certificate) = x509_parser::parse_x509_certificate(own)
            .map_err(|error| Refusal::Untrusted(error.to_string()))?;
        identity(&certificate, own)
    }

    /// The verifier for the handshake, which leaves the question of trust to [`ClientCaVerifier::verify`].
    pub(super) fn handshake_verifier(&self, provider: Arc<CryptoProvider>) -> Arc<dyn ClientCertVerifier> {
        let hints = self.verifier.as_ref().map(|verifier| verifier.root_hint_subjects().to_vec());
        Arc::new(AnyHolder { hints: hints.unwrap_or_default(), provider })
    }
}

fn identity(certificate: &X509Certificate<'_>, der: &CertificateDer<'_>) -> Result<CertIdentity, Refusal> {
    let not_text = |_| Refusal::Nameless("a part of it is no text");
    let subject = certificate.subject();
    // Of several CNs the last counts: it is the most specific, and the one that Kubernetes takes.
    let common_name =
        subject.iter_common_name().last().map(|name| name.as_str()).transpose().map_err(not_text)?;
    let common_name = common_name.filter(|name| !name.is_empty()).ok_or(Refusal::Nameless("it has no CN"))?;
    let organizations = subject.iter_organization().map(|name| name.as_str().map(str::to_owned));
    let uid_oid = oid!(1.3.6.1.4.1.57683.2);
    let uid = subject.iter_by_oid(&uid_oid).last().map(|uid| uid.as_str()).transpose().map_err(not_text)?;
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    let not_after = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default();
    Ok(CertIdentity {
        common_name: common_name.to_owned(),
        organizations: organizations.collect::<Result<_, _>>().map_err(not_text)?,
        uid: uid.map(str::to_owned),
        fingerprint: digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        valid_until: UnixTime::since_unix_epoch(std::time::Duration::from_secs(not_after)),
    })
}

/// Asks for a certificate, does not insist, and takes any whose key the client proves to hold.
#[derive(Debug)]
struct AnyHolder {
    /// Names of the authorities that a client with several certificates should choose by.
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyHolder {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
