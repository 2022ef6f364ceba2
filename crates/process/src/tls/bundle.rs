//! CA bundles that several servers maintain together.

use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use x509::pem;

use super::{Error, any_certificates};

/// The time for which an expired certificate stays in a bundle, because clocks differ.
const SLACK: Duration = Duration::from_secs(5 * 60);

/// Merges PEM bundles in order, without duplicates and expired certificates.
///
/// # Errors
/// When a bundle is no PEM, or contains something that is no certificate.
pub fn merge_bundles(bundles: &[&str], now: SystemTime) -> Result<String, Error> {
    const WHAT: &str = "a CA bundle";
    let mut all: Vec<CertificateDer<'static>> = Vec::new();
    for bundle in bundles {
        for certificate in any_certificates(WHAT, bundle.as_bytes())? {
            if !all.contains(&certificate) && is_valid(&certificate, now)? {
                all.push(certificate);
            }
        }
    }
    Ok(all.iter().map(|certificate| pem::encode(pem::CERTIFICATE, certificate)).collect())
}

fn is_valid(certificate: &CertificateDer<'_>, now: SystemTime) -> Result<bool, Error> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|error| Error::Unusable { what: "a certificate", reason: error.to_string() })?;
    let end = parsed.validity().not_after.timestamp();
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(SLACK);
    Ok(u64::try_from(end).is_ok_and(|end| end > now.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ca(name: &str, year: i32) -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        pem::encode(pem::CERTIFICATE, params.self_signed(&key).unwrap().der())
    }

    #[test]
    fn each_certificate_is_there_once_until_it_ends() {
        let [old, one, other] = [ca("old", 2020), ca("one", 2100), ca("other", 2100)];
        let both = format!("# a comment\n{other}\n{one}");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(merge_bundles(&[&one, &both, &old], now).unwrap(), format!("{one}{other}"));
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800) + SLACK;
        assert_eq!(merge_bundles(&[&old], then - Duration::from_secs(1)).unwrap(), old);
        assert_eq!(merge_bundles(&[&old], then).unwrap(), "");
        assert_eq!(merge_bundles(&[], now).unwrap(), "");
        assert!(
            merge_bundles(&["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"], now).is_err()
        );
    }
}
