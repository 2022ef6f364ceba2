//! What the authority signs for others: certificates for clients that ask for one.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateSigningRequestParams, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose};
use time::OffsetDateTime;

use super::certificate::{Authority, Inspected};

/// Clocks differ: a certificate is valid a little before it was asked for.
const BACKDATED: Duration = Duration::from_secs(5 * 60);

/// The authority as one who signs. Cheap to clone.
#[derive(Clone)]
pub struct Signer(pub(super) Arc<Authority>);

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    /// Signs a request (PEM) for a client. Its subject and its other names are those of the request; all else is decided here.
    ///
    /// # Errors
    /// What is wrong with the request, or with the authority.
    pub fn client(
        &self,
        request: &str,
        usages: &[KeyUsage],
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<String, String> {
        let mut asked =
            CertificateSigningRequestParams::from_pem(request).map_err(|error| error.to_string())?;
        let params = &mut asked.params;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = usages.iter().map(|usage| usage.purpose()).collect();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        params.not_before = OffsetDateTime::from(now - BACKDATED);
        params.not_after = self.last_moment()?.min(OffsetDateTime::from(now + lifetime));
        asked
            .signed_by(self.0.issuer())
            .map(|certificate| certificate.pem())
            .map_err(|error| error.to_string())
    }

    /// No certificate outlives the one that vouches for it.
    fn last_moment(&self) -> Result<OffsetDateTime, String> {
        let ends = Inspected::from_pem(self.0.certificate())?.ends();
        OffsetDateTime::from_unix_timestamp(ends).map_err(|error| error.to_string())
    }
}

/// What the key of a client may be used for, besides proving who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUsage {
    /// To sign.
    DigitalSignature,
    /// To encipher keys.
    KeyEncipherment,
}

impl KeyUsage {
    fn purpose(self) -> KeyUsagePurpose {
        match self {
            Self::DigitalSignature => KeyUsagePurpose::DigitalSignature,
            Self::KeyEncipherment => KeyUsagePurpose::KeyEncipherment,
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use x509_parser::pem::parse_x509_pem;

    use super::*;

    fn request(user: &str) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        // What is asked for here is not given.
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
    }

    #[test]
    fn a_client_gets_its_name_and_no_more_rights_or_time_than_the_authority_gives() {
        let now = SystemTime::now();
        let day = Duration::from_secs(24 * 60 * 60);
        let signer = Signer(Arc::new(Authority::new(now, day).unwrap()));
        let pem = signer.client(&request("ann"), &[KeyUsage::DigitalSignature], now, 2 * day).unwrap();
        let (_, pem) = parse_x509_pem(pem.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        assert_eq!(certificate.subject().to_string(), "CN=ann");
        assert!(!certificate.is_ca());
        let usage = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth);
        let ends = Inspected::from_pem(signer.0.certificate()).unwrap().ends();
        assert_eq!(certificate.validity().not_after.timestamp(), ends);
        assert!(certificate.verify_signature(None).is_err(), "it is not signed by itself");
    }

    #[test]
    fn what_is_no_request_is_not_signed() {
        let signer = Signer(Arc::new(Authority::new(SystemTime::now(), Duration::from_secs(60)).unwrap()));
        let hour = Duration::from_secs(60 * 60);
        assert!(signer.client("nothing", &[], SystemTime::now(), hour).is_err());
    }
}
