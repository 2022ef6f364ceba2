//! Server certificates: trusted if a CA in the bundle signed them, or if the bundle contains the certificate
//! itself.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

use super::provider;

/// Verifies server certificates with a bundle. Test environments distribute a server's own certificate
/// instead of its CA's: such a certificate is trusted while it is valid and has the right name.
#[derive(Debug)]
pub(super) struct BundleVerifier {
    bundle: Vec<CertificateDer<'static>>,
    by_ca: Arc<WebPkiServerVerifier>,
}

impl BundleVerifier {
    pub fn new(bundle: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &bundle {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let by_ca = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { bundle, by_ca })
    }
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.bundle.contains(own) {
            return self.by_ca.verify_server_cert(own, intermediates, name, ocsp, now);
        }
        check_validity(own, now)?;
        verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_ca.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_ca.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_ca.supported_verify_schemes()
    }
}

fn check_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, parsed) =
        x509_parser::parse_x509_certificate(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::{pki::serving_pair, tls::certificates};

    #[test]
    fn a_certificate_of_the_bundle_vouches_for_itself_while_it_is_valid_and_has_the_name() {
        let now = SystemTime::now();
        let pair = serving_pair("hook.example.org", now).unwrap();
        let chain = certificates("the pair", pair.certificate.as_bytes()).unwrap();
        let at = |time: SystemTime| {
            UnixTime::since_unix_epoch(time.duration_since(SystemTime::UNIX_EPOCH).unwrap())
        };
        let verdict = |bundle: &[CertificateDer<'static>], name: &'static str, time: SystemTime| {
            let verifier = BundleVerifier::new(bundle.to_vec()).unwrap();
            let name = ServerName::try_from(name).unwrap();
            verifier.verify_server_cert(&chain[0], &[], &name, &[], at(time)).map(drop)
        };
        assert_eq!(verdict(&chain[..1], "hook.example.org", now), Ok(()));
        assert!(verdict(&chain[..1], "other.example.org", now).is_err());
        let years = Duration::from_secs(20 * 365 * 24 * 3600);
        assert_eq!(
            verdict(&chain[..1], "hook.example.org", now + years),
            Err(CertificateError::Expired.into())
        );
        let stranger = serving_pair("hook.example.org", now).unwrap();
        let stranger = certificates("the pair", stranger.certificate.as_bytes()).unwrap();
        assert!(verdict(&stranger[..1], "hook.example.org", now).is_err());
    }
}
