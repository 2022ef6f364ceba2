//! Bundles of authorities that several servers write together.

use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use x509::pem;

use super::{Error, any_certificates};

/// How long a certificate stays after its end: clocks differ.
const SLACK: Duration = Duration::from_secs(5 * 60);

/// The certificates of these PEM bundles as one, in their order: each once, and none that has ended.
///
/// # Errors
/// When one of them is no PEM, or something in it is no certificate.
pub fn united(bundles: &[&str], now: SystemTime) -> Result<String, Error> {
    const WHAT: &str = "a bundle of authorities";
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

    fn authority(name: &str, year: i32) -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        pem::encode(pem::CERTIFICATE, params.self_signed(&key).unwrap().der())
    }

    #[test]
    fn each_certificate_is_there_once_until_it_ends() {
        let [old, one, other] = [authority("old", 2020), authority("one", 2100), authority("other", 2100)];
        let both = format!("# a comment\n{other}\n{one}");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(united(&[&one, &both, &old], now).unwrap(), format!("{one}{other}"));
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800) + SLACK;
        assert_eq!(united(&[&old], then - Duration::from_secs(1)).unwrap(), old);
        assert_eq!(united(&[&old], then).unwrap(), "");
        assert_eq!(united(&[], now).unwrap(), "");
        assert!(united(&["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"], now).is_err());
    }
}
