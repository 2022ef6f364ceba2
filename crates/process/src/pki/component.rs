//! Certificates of a component that keeps them elsewhere than in files, such as a webhook server in a Secret.

use std::time::{Duration, SystemTime};

use thiserror::Error;
use x509::pem;

use super::Identity;
use super::certificate::{CLOCK_SKEW, Ca, ParsedCertificate, Subject};

/// The reason why a CA cannot sign.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the CA cannot be used: {0}")]
pub struct Unusable(String);

/// Creates a CA with its key. `name` is its common name.
///
/// # Errors
/// When a key or certificate cannot be generated.
pub fn component_ca(name: &str, now: SystemTime, lifetime: Duration) -> Result<Identity, super::Error> {
    let ca = Ca::named(name, now, lifetime)?;
    Ok(Identity { certificate: ca.certificate().to_owned(), key: ca.key() })
}

/// Issues a serving certificate for DNS names and addresses. It ends with its CA at the latest.
///
/// # Errors
/// When the CA cannot be read, or its key does not belong to it; when a key or certificate cannot be generated.
pub fn issue(
    ca: &Identity,
    name: &str,
    names: &[String],
    now: SystemTime,
    lifetime: Duration,
) -> Result<Identity, Unusable> {
    let parsed = ParsedCertificate::from_pem(&ca.certificate).map_err(Unusable)?;
    let ends = u64::try_from(parsed.ends()).unwrap_or_default();
    let rest = (SystemTime::UNIX_EPOCH + Duration::from_secs(ends)).duration_since(now).unwrap_or_default();
    let ca = Ca::load(ca.certificate.clone(), &ca.key, &parsed)
        .map_err(|_| Unusable("its key does not belong to its certificate".to_owned()))?;
    let subject = Subject::component(name, names.to_vec());
    ca.issue(&subject, now, lifetime.min(rest)).map_err(|error| Unusable(error.to_string()))
}

/// The creation of a certificate of [`component_ca`] or [`issue`]; `None` if the text holds no certificate.
#[must_use]
pub fn created_at(pem: &str) -> Option<SystemTime> {
    let begins = u64::try_from(ParsedCertificate::from_pem(pem).ok()?.begins()).ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(begins) + CLOCK_SKEW)
}

/// Whether an identity is a certificate with its key, signed by the first certificate of `ca`, with all of these names.
#[must_use]
pub fn is_serving_for(identity: &Identity, ca: &str, names: &[String]) -> bool {
    let (Ok(certificate), Ok(issuer)) =
        (ParsedCertificate::from_pem(&identity.certificate), ParsedCertificate::from_pem(ca))
    else {
        return false;
    };
    certificate.has_key(&identity.key)
        && certificate.is_signed_by(&issuer)
        && certificate.covers(&Subject::component("", names.to_vec()))
}

/// The certificates of a PEM bundle, each as PEM of its own. Blocks of other types and broken ones are skipped.
#[must_use]
pub fn split_bundle(bundle: &str) -> Vec<String> {
    let blocks = pem::blocks(bundle.as_bytes()).filter_map(Result::ok);
    let certificates = blocks.filter(|block| block.label == pem::CERTIFICATE);
    certificates.map(|block| pem::encode(pem::CERTIFICATE, &block.contents)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn a_certificate_serves_its_names_by_its_ca_and_ends_with_it() {
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let (ca, other) = (component_ca("a", now, 2 * DAY).unwrap(), component_ca("a", now, DAY).unwrap());
        let names = ["hook.space.svc".to_owned(), "127.0.0.1".to_owned()];
        let identity = issue(&ca, "hook", &names, now, DAY).unwrap();
        assert!(is_serving_for(&identity, &ca.certificate, &names[..1]));
        assert!(is_serving_for(&identity, &ca.certificate, &names));
        assert!(!is_serving_for(&identity, &other.certificate, &names));
        assert!(!is_serving_for(&identity, &ca.certificate, &["else.space.svc".to_owned()]));
        assert!(!is_serving_for(
            &Identity { key: ca.key.clone(), ..identity.clone() },
            &ca.certificate,
            &names
        ));
        assert!(!is_serving_for(&identity, "", &names));
        let bundle = format!("# comment\n{}{}{}", ca.certificate, ca.key, other.certificate);
        assert_eq!(split_bundle(&bundle), [ca.certificate.clone(), other.certificate.clone()]);
        assert_eq!(created_at(&identity.certificate), Some(now));
        let ends = |identity: &Identity| super::super::expires_at(&identity.certificate).unwrap();
        let long = issue(&ca, "hook", &names, now, 9 * DAY).unwrap();
        assert_eq!(ends(&long), ends(&ca));
        assert!(issue(&Identity { key: other.key, ..ca }, "hook", &names, now, DAY).is_err());
    }
}
