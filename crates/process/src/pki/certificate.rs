//! Generates certificates with rcgen, and reads existing ones with x509-parser.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::pki_types::CertificateDer;
use time::OffsetDateTime;
use x509::pem;
use x509_parser::{
    extensions::{GeneralName, ParsedExtension},
    prelude::X509Certificate,
};

use super::Identity;
use crate::keys;

/// Tolerated clock skew: a certificate is valid from a little before its creation.
pub(super) const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// The subject of a certificate that the CA issues.
#[derive(Debug)]
pub(super) enum Subject {
    /// A server with these DNS names and addresses.
    Server { common_name: String, names: Vec<String> },
    /// A client: a user in one group.
    Client { user: &'static str, group: &'static str },
}

impl Subject {
    pub(super) fn server(names: Vec<String>) -> Self {
        Self::component("kube-apiserver", names)
    }

    /// A server of another component.
    pub(super) fn component(name: &str, names: Vec<String>) -> Self {
        Self::Server { common_name: name.to_owned(), names }
    }

    /// The group `system:masters` passes every authorizer.
    pub(super) fn admin() -> Self {
        Self::Client { user: "admin", group: "system:masters" }
    }

    fn params(&self) -> Result<CertificateParams, rcgen::Error> {
        let (names, usage) = match self {
            Self::Server { names, .. } => (names.clone(), ExtendedKeyUsagePurpose::ServerAuth),
            Self::Client { .. } => (Vec::new(), ExtendedKeyUsagePurpose::ClientAuth),
        };
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        match self {
            Self::Server { common_name, .. } => {
                params.distinguished_name.push(DnType::CommonName, common_name);
            }
            Self::Client { user, group } => {
                params.distinguished_name.push(DnType::OrganizationName, *group);
                params.distinguished_name.push(DnType::CommonName, *user);
            }
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

/// The CA certificate with its key.
pub(super) struct Ca {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(super) fn new(now: SystemTime, lifetime: Duration) -> Result<Self, rcgen::Error> {
        Self::named("orlop-ca", now, lifetime)
    }

    /// A new CA with this common name.
    pub(super) fn named(name: &str, now: SystemTime, lifetime: Duration) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        set_validity(&mut params, now, lifetime);
        params.serial_number = Some(SerialNumber::from_slice(&serial_number()?));
        let certificate = pem::encode(pem::CERTIFICATE, params.self_signed(&key)?.der());
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Loads an existing CA. Errors are about its key.
    pub(super) fn load(certificate: String, key: &str, parsed: &ParsedCertificate) -> Result<Self, String> {
        if !parsed.has_key(key) {
            return Err("it is not the key of ca.crt".to_owned());
        }
        let key = key_pair(key).ok_or("it holds no usable key")?;
        let issuer = Issuer::from_ca_cert_der(&CertificateDer::from(&parsed.der[..]), key)
            .map_err(|error| error.to_string())?;
        Ok(Self { certificate, issuer })
    }

    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    pub(super) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    pub(super) fn key(&self) -> String {
        keys::encode(self.issuer.key().serialized_der())
    }

    pub(super) fn issue(
        &self,
        subject: &Subject,
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = subject.params()?;
        set_validity(&mut params, now, lifetime);
        params.serial_number = Some(SerialNumber::from_slice(&serial_number()?));
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate: pem::encode(pem::CERTIFICATE, certificate.der()),
            key: keys::encode(key.serialized_der()),
        })
    }
}

/// A random serial number of 16 bytes, positive and without leading zeros.
pub(super) fn serial_number() -> Result<[u8; 16], rcgen::Error> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| rcgen::Error::RingUnspecified)?;
    bytes[0] = (bytes[0] & 0x3f) | 0x40;
    Ok(bytes)
}

fn key_pair(pem: &str) -> Option<KeyPair> {
    KeyPair::try_from(&keys::private_key(pem.as_bytes())?).ok()
}

fn set_validity(params: &mut CertificateParams, now: SystemTime, lifetime: Duration) {
    params.not_before = OffsetDateTime::from(now - CLOCK_SKEW);
    params.not_after = OffsetDateTime::from(now + lifetime);
}

/// A certificate from a file.
pub(super) struct ParsedCertificate {
    der: Vec<u8>,
}

impl ParsedCertificate {
    pub(super) fn from_pem(text: &str) -> Result<Self, String> {
        let block = pem::blocks(text.as_bytes()).next().and_then(Result::ok).ok_or("it is no PEM file")?;
        if block.label != pem::CERTIFICATE || x509_parser::parse_x509_certificate(&block.contents).is_err() {
            return Err("it holds no certificate".to_owned());
        }
        Ok(Self { der: block.contents })
    }

    fn certificate(&self) -> X509Certificate<'_> {
        let (_, certificate) =
            x509_parser::parse_x509_certificate(&self.der).expect("from_pem has parsed it");
        certificate
    }

    /// Whether the certificate is valid now and until `then`.
    pub(super) fn is_valid_until(&self, now: SystemTime, then: SystemTime) -> bool {
        let certificate = self.certificate();
        let validity = certificate.validity();
        validity.not_before.to_datetime() <= OffsetDateTime::from(now)
            && OffsetDateTime::from(then) < validity.not_after.to_datetime()
    }

    /// The first second of its validity.
    pub(super) fn begins(&self) -> i64 {
        self.certificate().validity().not_before.timestamp()
    }

    /// The last second of its validity.
    pub(super) fn ends(&self) -> i64 {
        self.certificate().validity().not_after.timestamp()
    }

    /// The subject, as a DER `Name`.
    pub(super) fn subject(&self) -> Vec<u8> {
        self.certificate().subject().as_raw().to_vec()
    }

    /// The subject key identifier, if the certificate has one.
    pub(super) fn key_identifier(&self) -> Option<Vec<u8>> {
        self.certificate().extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
            _ => None,
        })
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        key_pair(key).is_some_and(|key| key.subject_public_key_info() == self.certificate().public_key().raw)
    }

    pub(super) fn is_issued_by(&self, ca: &Ca) -> bool {
        ParsedCertificate::from_pem(ca.certificate()).is_ok_and(|issuer| self.is_signed_by(&issuer))
    }

    pub(super) fn is_signed_by(&self, issuer: &Self) -> bool {
        self.certificate().verify_signature(Some(issuer.certificate().public_key())).is_ok()
    }

    /// Whether the certificate has at least the names and usages that this subject needs.
    pub(super) fn covers(&self, subject: &Subject) -> bool {
        let certificate = self.certificate();
        match subject {
            Subject::Server { names, .. } => {
                let covered = certificate.subject_alternative_name().ok().flatten();
                let covered = covered.map(|extension| &extension.value.general_names[..]).unwrap_or_default();
                names.iter().all(|name| covered.iter().any(|general| is_name(general, name)))
            }
            Subject::Client { user, group } => {
                let users = certificate.subject().iter_common_name();
                let groups = certificate.subject().iter_organization();
                users.map(|name| name.as_str()).eq([Ok(*user)])
                    && groups.map(|name| name.as_str()).eq([Ok(*group)])
            }
        }
    }
}

fn is_name(general: &GeneralName<'_>, name: &str) -> bool {
    match (general, name.parse::<IpAddr>()) {
        (GeneralName::DNSName(dns), Err(_)) => *dns == name,
        (GeneralName::IPAddress(octets), Ok(IpAddr::V4(address))) => **octets == address.octets(),
        (GeneralName::IPAddress(octets), Ok(IpAddr::V6(address))) => **octets == address.octets(),
        _ => false,
    }
}
