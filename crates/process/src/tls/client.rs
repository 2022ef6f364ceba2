//! Client certificates: the handshake accepts any, the authenticator verifies them.

use std::{ops::RangeInclusive, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use thiserror::Error;
use x509_parser::{certificate::Validity, der_parser::oid, prelude::X509Certificate, x509::X509Version};

use super::{certificates, provider};

/// The user that a client certificate names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertIdentity {
    /// The CN of the subject: the user name. Never empty.
    pub common_name: String,
    /// The Os of the subject, in order: the groups.
    pub organizations: Vec<String>,
    /// The uid of the user, for which Kubernetes has its own attribute type.
    pub uid: Option<String>,
    /// SHA-256 of the certificate in lower-case hexadecimal: Kubernetes' credential id.
    pub fingerprint: String,
    /// The earliest expiry in the chain: after it the chain has to be verified again.
    pub valid_until: UnixTime,
}

/// The reason why a client certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The client sent no certificate.
    #[error("no certificate was shown")]
    Absent,
    /// No client CA is configured and valid.
    #[error("no client CA is configured and valid")]
    NoCa,
    /// The certificate is not signed by a trusted CA, not valid at this time, or not for client
    /// authentication.
    #[error("the certificate is not trusted: {0}")]
    Untrusted(String),
    /// The certificate is trusted, but its subject is no user.
    #[error("the certificate's subject is no user: {0}")]
    Nameless(&'static str),
}

/// Verifies client certificates with a CA bundle. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientCaVerifier {
    /// One verifier per CA, so that a CA that is not valid at the time of a verification can be skipped.
    anchors: Arc<[Anchor]>,
}

/// A client CA.
#[derive(Clone, Debug)]
struct Anchor {
    verifier: Arc<dyn ClientCertVerifier>,
    /// Its validity, in seconds since the epoch.
    validity: RangeInclusive<u64>,
}

impl Default for ClientCaVerifier {
    fn default() -> Self {
        Self::trusting_none()
    }
}

impl ClientCaVerifier {
    /// Trusts no CA: every certificate is rejected.
    #[must_use]
    pub fn trusting_none() -> Self {
        Self { anchors: Arc::new([]) }
    }

    /// Trusts the CAs of a PEM bundle, each while it is valid. Certificates that are no CAs are ignored with
    /// a warning.
    ///
    /// # Errors
    /// When the bundle is no PEM, or no certificate in it is a CA that is valid at this time.
    pub fn from_pem(bundle: &[u8], now: UnixTime) -> Result<Self, super::Error> {
        const WHAT: &str = "the client CA bundle";
        let (mut anchors, mut problems) = (Vec::new(), Vec::new());
        for (index, certificate) in certificates(WHAT, bundle)?.into_iter().enumerate() {
            let number = index + 1;
            match Anchor::new(certificate) {
                Ok(anchor) => {
                    if !anchor.is_valid(now) {
                        problems.push(format!("certificate {number} is expired or not valid yet"));
                    }
                    anchors.push(anchor);
                }
                Err(reason) => {
                    tracing::warn!(number, reason, "ignoring a certificate in the client CA bundle");
                    problems.push(format!("certificate {number} {reason}"));
                }
            }
        }
        if !anchors.iter().any(|anchor| anchor.is_valid(now)) {
            let reason = format!("it has no valid CA certificate: {}", problems.join(", "));
            return Err(super::Error::Unusable { what: WHAT, reason });
        }
        Ok(Self { anchors: anchors.into() })
    }

    /// Trusts the CAs of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self { anchors: self.anchors.iter().chain(&*other.anchors).cloned().collect() }
    }

    /// Verifies a chain, the client's own certificate first, and returns its user.
    ///
    /// # Errors
    /// The reason why the chain is rejected.
    pub fn verify(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<CertIdentity, Refusal> {
        let (own, intermediates) = chain.split_first().ok_or(Refusal::Absent)?;
        let mut refusal = Refusal::NoCa;
        for anchor in self.anchors.iter().filter(|anchor| anchor.is_valid(now)) {
            let error = match anchor.verifier.verify_client_cert(own, intermediates, now) {
                Ok(_) => return identity(chain, own, *anchor.validity.end()),
                Err(error) => error,
            };
            // `UnknownIssuer` is the error of every CA that did not sign the certificate; another CA's reason
            // is more specific.
            let is_stranger = error == CertificateError::UnknownIssuer.into();
            if refusal == Refusal::NoCa || !is_stranger {
                refusal = Refusal::Untrusted(error.to_string());
            }
        }
        Err(refusal)
    }

    /// The verifier for the handshake, which leaves trust to [`ClientCaVerifier::verify`].
    pub(super) fn handshake_verifier(&self, provider: Arc<CryptoProvider>) -> Arc<dyn ClientCertVerifier> {
        let hints = self.anchors.iter().flat_map(|anchor| anchor.verifier.root_hint_subjects().to_vec());
        Arc::new(AcceptAnyCertificate { hints: hints.collect(), provider })
    }
}

impl Anchor {
    /// Accepts a CA certificate by Go's rules: webpki checks neither the constraints nor the validity of a
    /// trust anchor.
    fn new(certificate: CertificateDer<'static>) -> Result<Self, String> {
        let (_, parsed) = x509_parser::parse_x509_certificate(&certificate)
            .map_err(|error| format!("cannot be parsed: {error}"))?;
        let constraints = parsed.basic_constraints().ok().flatten();
        if parsed.version() != X509Version::V3 || !constraints.is_some_and(|found| found.value.ca) {
            return Err("is no CA certificate: it lacks the basic constraint CA:TRUE".to_owned());
        }
        let usage = parsed.key_usage().map_err(|_| "has an invalid key usage".to_owned())?;
        if usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
            return Err("is no CA certificate: its key usage lacks keyCertSign".to_owned());
        }
        let validity = seconds(parsed.validity());
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(|error| format!("cannot be used: {error}"))?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| format!("cannot be used: {error}"))?;
        Ok(Self { verifier, validity })
    }

    fn is_valid(&self, now: UnixTime) -> bool {
        self.validity.contains(&now.as_secs())
    }
}

fn seconds(validity: &Validity) -> RangeInclusive<u64> {
    let seconds = |time: i64| u64::try_from(time).unwrap_or_default();
    seconds(validity.not_before.timestamp())..=seconds(validity.not_after.timestamp())
}

/// The user of a verified chain; `latest` is the expiry of its CA.
fn identity(
    chain: &[CertificateDer<'_>],
    own: &CertificateDer<'_>,
    latest: u64,
) -> Result<CertIdentity, Refusal> {
    let end = |der: &CertificateDer<'_>| {
        let parsed = x509_parser::parse_x509_certificate(der);
        parsed.map(|(_, parsed)| *seconds(parsed.validity()).end()).unwrap_or_default()
    };
    let valid_until = chain.iter().map(end).fold(latest, u64::min);
    let (_, certificate) =
        x509_parser::parse_x509_certificate(own).map_err(|error| Refusal::Untrusted(error.to_string()))?;
    subject(&certificate, own, UnixTime::since_unix_epoch(std::time::Duration::from_secs(valid_until)))
}

fn subject(
    certificate: &X509Certificate<'_>,
    der: &CertificateDer<'_>,
    valid_until: UnixTime,
) -> Result<CertIdentity, Refusal> {
    let not_text = |_| Refusal::Nameless("a part of it is no text");
    let subject = certificate.subject();
    // Of several CNs the last counts, as in Kubernetes.
    let common_name =
        subject.iter_common_name().last().map(|name| name.as_str()).transpose().map_err(not_text)?;
    let common_name = common_name.filter(|name| !name.is_empty()).ok_or(Refusal::Nameless("it has no CN"))?;
    let organizations = subject.iter_organization().map(|name| name.as_str().map(str::to_owned));
    let uid_oid = oid!(1.3.6.1.4.1.57683.2);
    let uid = subject.iter_by_oid(&uid_oid).last().map(|uid| uid.as_str()).transpose().map_err(not_text)?;
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    Ok(CertIdentity {
        common_name: common_name.to_owned(),
        organizations: organizations.collect::<Result<_, _>>().map_err(not_text)?,
        uid: uid.map(str::to_owned),
        fingerprint: digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        valid_until,
    })
}

/// Requests a certificate, does not require one, and accepts any whose key the client holds.
#[derive(Debug)]
struct AcceptAnyCertificate {
    /// CA names by which a client with several certificates chooses one.
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AcceptAnyCertificate {
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
