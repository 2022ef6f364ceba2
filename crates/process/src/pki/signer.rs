//! Signs client certificates for certificate signing requests.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, SigningKey as _,
};
use time::OffsetDateTime;
use x509::{
    CertificateRequest,
    der::{sequence, tag, value},
    pem,
};

use super::certificate::{Ca, ParsedCertificate, serial_number};

/// Tolerated clock skew: a certificate is valid from a little before its creation.
const BACKDATED: Duration = Duration::from_secs(5 * 60);

/// The group that passes every authorizer. The signer never issues it, whatever admission permits.
const MASTERS: &str = "system:masters";

/// `[0] EXPLICIT`, the version of a certificate, and `[3] EXPLICIT`, its extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// `[0] IMPLICIT` of an authority key identifier.
const KEY_IDENTIFIER: u8 = 0x80;

/// Object identifiers, as the content of an `OBJECT IDENTIFIER`.
mod oid {
    pub(super) const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
    pub(super) const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
    pub(super) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
    pub(super) const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x23];
    pub(super) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
    pub(super) const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
    pub(super) const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
    pub(super) const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
    pub(super) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
    pub(super) const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
}

/// The CA as a signer of client certificates. Cheap to clone.
#[derive(Clone)]
pub struct Signer(pub(super) Arc<Ca>);

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    /// Signs a client certificate and returns it as PEM. Subject, alternative names and key are copied from
    /// the request unchanged; the signer decides everything else.
    ///
    /// # Errors
    /// When the request is not signed by its own key or asks for `system:masters`, or the CA cannot sign.
    pub fn client(
        &self,
        request: &CertificateRequest,
        usages: &[KeyUsage],
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<String, String> {
        request.check_signature().map_err(|error| error.to_string())?;
        if request.organizations().iter().any(|group| group == MASTERS) {
            return Err(format!("the signer never issues certificates for the group {MASTERS}"));
        }
        let ca = ParsedCertificate::from_pem(self.0.certificate())?;
        let last = OffsetDateTime::from_unix_timestamp(ca.ends()).map_err(|error| error.to_string())?;
        // A certificate must not outlive its CA.
        let (from, until) =
            (OffsetDateTime::from(now - BACKDATED), last.min(OffsetDateTime::from(now + lifetime)));
        let algorithm = algorithm(self.0.issuer().key())?;
        let serial = serial_number().map_err(|error| error.to_string())?;
        let body = sequence(&[
            &value(VERSION, &value(tag::INTEGER, &[2])),
            &value(tag::INTEGER, &serial),
            &algorithm,
            &ca.subject(),
            &sequence(&[&moment(from), &moment(until)]),
            request.subject(),
            request.public_key(),
            &value(EXTENSIONS, &extensions(request, usages, ca.key_identifier().as_deref())),
        ]);
        let signature = self.0.issuer().key().sign(&body).map_err(|error| error.to_string())?;
        let bits = value(tag::BIT_STRING, &[&[0], &signature[..]].concat());
        Ok(pem::encode(pem::CERTIFICATE, &sequence(&[&body, &algorithm, &bits])))
    }
}

/// The `AlgorithmIdentifier` of a key's signatures.
fn algorithm(key: &KeyPair) -> Result<Vec<u8>, String> {
    let of = |oid: &[u8]| sequence(&[&value(tag::OID, oid)]);
    match key.algorithm() {
        known if *known == PKCS_ECDSA_P256_SHA256 => Ok(of(oid::ECDSA_SHA256)),
        known if *known == PKCS_ECDSA_P384_SHA384 => Ok(of(oid::ECDSA_SHA384)),
        known if *known == PKCS_ED25519 => Ok(of(oid::ED25519)),
        // The parameters of RSA are NULL.
        known if *known == PKCS_RSA_SHA256 => Ok(sequence(&[&value(tag::OID, oid::RSA_SHA256), &[5, 0]])),
        _ => Err("the key of the CA is of a type that signs no client certificates".to_owned()),
    }
}

fn extensions(request: &CertificateRequest, usages: &[KeyUsage], issuer: Option<&[u8]>) -> Vec<u8> {
    let extension = |oid: &[u8], is_critical: bool, content: &[u8]| {
        let critical = if is_critical { value(tag::BOOLEAN, &[0xff]) } else { Vec::new() };
        sequence(&[&value(tag::OID, oid), &critical, &value(tag::OCTET_STRING, content)])
    };
    let client_auth = sequence(&[&value(tag::OID, oid::CLIENT_AUTH)]);
    let mut all = vec![
        extension(oid::EXTENDED_KEY_USAGE, false, &client_auth),
        extension(oid::BASIC_CONSTRAINTS, true, &sequence(&[])),
    ];
    if !usages.is_empty() {
        all.push(extension(oid::KEY_USAGE, true, &usage_bits(usages)));
    }
    if let Some(identifier) = issuer {
        let identifier = sequence(&[&value(KEY_IDENTIFIER, identifier)]);
        all.push(extension(oid::AUTHORITY_KEY_IDENTIFIER, false, &identifier));
    }
    if let Some(names) = request.alternative_names() {
        all.push(extension(oid::ALTERNATIVE_NAMES, false, names));
    }
    value(tag::SEQUENCE, &all.concat())
}

/// Encodes named bits: the first bit is the highest, and trailing zeros are omitted.
fn usage_bits(usages: &[KeyUsage]) -> Vec<u8> {
    let bits = usages.iter().fold(0u8, |bits, usage| bits | usage.bit());
    let unused = u8::try_from(bits.trailing_zeros()).expect("a byte has eight bits");
    value(tag::BIT_STRING, &[unused, bits])
}

/// A time as RFC 5280 requires: `UTCTime` until 2049, `GeneralizedTime` from 2050 on.
fn moment(time: OffsetDateTime) -> Vec<u8> {
    let time = time.to_offset(time::UtcOffset::UTC);
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second) = time.to_hms();
    let rest = format!("{month:02}{day:02}{hour:02}{minute:02}{second:02}Z");
    if (1950..2050).contains(&year) {
        value(tag::UTC_TIME, format!("{:02}{rest}", year % 100).as_bytes())
    } else {
        value(tag::GENERALIZED_TIME, format!("{year:04}{rest}").as_bytes())
    }
}

/// A key usage of a client certificate besides client authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUsage {
    /// Signatures.
    DigitalSignature,
    /// Key encipherment.
    KeyEncipherment,
}

impl KeyUsage {
    fn bit(self) -> u8 {
        match self {
            Self::DigitalSignature => 0x80,
            Self::KeyEncipherment => 0x20,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rcgen::{CertificateParams, DnType, IsCa};
    use x509_parser::prelude::X509Certificate;

    use super::*;
    use crate::tls::ClientCaVerifier;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn fixture(name: &str) -> CertificateRequest {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/certificates");
        CertificateRequest::from_pem(&std::fs::read(format!("{folder}/{name}.csr")).unwrap()).unwrap()
    }

    fn request(user: &str) -> CertificateRequest {
        let mut params =
            CertificateParams::new(["a.example.org".to_owned(), "192.0.2.1".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        // The request asks to be a CA, which the signer must ignore.
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        CertificateRequest::from_der(request.der()).unwrap()
    }

    fn signer(now: SystemTime) -> Signer {
        Signer(Arc::new(Ca::new(now, DAY).unwrap()))
    }

    fn der(pem: &str) -> Vec<u8> {
        pem::single(pem.as_bytes(), pem::CERTIFICATE).unwrap()
    }

    fn parsed(der: &[u8]) -> X509Certificate<'_> {
        x509_parser::parse_x509_certificate(der).unwrap().1
    }

    #[test]
    fn a_client_gets_its_names_and_no_more_rights_or_time_than_the_ca_gives() {
        let now = SystemTime::now();
        let signer = signer(now);
        let usages = [KeyUsage::DigitalSignature, KeyUsage::KeyEncipherment];
        let der = der(&signer.client(&request("ann"), &usages, now, 2 * DAY).unwrap());
        let certificate = parsed(&der);
        assert_eq!(certificate.subject().to_string(), "CN=ann");
        assert!(!certificate.is_ca() && certificate.basic_constraints().unwrap().is_some());
        let usage = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth);
        let usage = certificate.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.flags == 0b101, "{:b}", usage.value.flags);
        let names = &certificate.subject_alternative_name().unwrap().unwrap().value.general_names;
        assert_eq!(names.len(), 2);
        let ca = ParsedCertificate::from_pem(signer.0.certificate()).unwrap();
        assert_eq!(certificate.validity().not_after.timestamp(), ca.ends());
        assert!(
            ParsedCertificate::from_pem(&pem::encode(pem::CERTIFICATE, &der))
                .unwrap()
                .is_issued_by(&signer.0)
        );
    }

    #[test]
    fn the_requested_subject_is_signed_unchanged_with_all_organizations() {
        let now = SystemTime::now();
        let (signer, asked) = (signer(now), fixture("two-organizations"));
        let der = der(&signer.client(&asked, &[], now, DAY).unwrap());
        assert_eq!(parsed(&der).subject().as_raw(), asked.subject());
        let moment = rustls::pki_types::UnixTime::now();
        let clients = ClientCaVerifier::from_pem(signer.0.certificate().as_bytes(), moment).unwrap();
        let identity = clients.verify(&[der.into()], moment).unwrap();
        assert_eq!(
            (identity.common_name.as_str(), identity.organizations.join(" ")),
            ("jane", "dev ops".to_owned())
        );
    }

    #[test]
    fn two_certificates_for_one_key_have_different_serial_numbers_of_16_positive_bytes() {
        let now = SystemTime::now();
        let (signer, asked) = (signer(now), fixture("dev"));
        let mut seen = HashSet::new();
        for _ in 0..20 {
            let der = der(&signer.client(&asked, &[], now, DAY).unwrap());
            let serial = parsed(&der).raw_serial().to_vec();
            assert!(serial.len() == 16 && serial[0] != 0 && serial[0] < 0x80, "{serial:?}");
            assert!(seen.insert(serial));
        }
    }

    #[test]
    fn the_signer_itself_refuses_masters_and_requests_that_their_key_did_not_sign() {
        let now = SystemTime::now();
        let signer = signer(now);
        let refused = signer.client(&fixture("masters"), &[], now, DAY).unwrap_err();
        assert!(refused.contains(MASTERS), "{refused}");
        let mut forged = fixture("dev").der().to_vec();
        *forged.last_mut().unwrap() ^= 1;
        let forged = CertificateRequest::from_der(&forged).unwrap();
        assert!(signer.client(&forged, &[], now, DAY).is_err());
    }

    #[test]
    fn times_from_2050_on_have_four_digits_of_the_year() {
        let at = |seconds| moment(OffsetDateTime::from_unix_timestamp(seconds).unwrap());
        assert_eq!(at(2_524_607_999), value(tag::UTC_TIME, b"491231235959Z"));
        assert_eq!(at(2_524_608_000), value(tag::GENERALIZED_TIME, b"20500101000000Z"));
    }
}
