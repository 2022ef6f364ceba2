//! Requests for certificates.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::x509::AttributeTypeAndValue;

/// Whom a request for a certificate names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedSubject {
    /// Empty for none.
    pub common_name: String,
    /// The organizations.
    pub organizations: Vec<String>,
}

/// Reads the subject of a request for a certificate, in PEM; `None` if it is none.
#[must_use]
pub fn asked_subject(request: &[u8]) -> Option<AskedSubject> {
    let (_, pem) = parse_x509_pem(request).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let subject = &request.certification_request_info.subject;
    Some(AskedSubject {
        common_name: subject.iter_common_name().last().map(in_any_letters).unwrap_or_default(),
        organizations: subject.iter_organization().map(in_any_letters).collect(),
    })
}

/// The text of a part of a name. Letters of two bytes are read, too: a signer may read them.
fn in_any_letters(part: &AttributeTypeAndValue<'_>) -> String {
    let in_pairs = || {
        let pairs = part.as_slice().chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        String::from_utf16_lossy(&pairs.collect::<Vec<u16>>())
    };
    part.as_str().map_or_else(|_| in_pairs(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    use super::*;

    fn asked(organization: DnValue) -> AskedSubject {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, organization);
        let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        asked_subject(request.pem().unwrap().as_bytes()).unwrap()
    }

    #[test]
    fn the_subject_of_a_request_is_read() {
        let wanted =
            AskedSubject { common_name: "jane".to_owned(), organizations: vec!["system:masters".to_owned()] };
        assert_eq!(asked(DnValue::Utf8String("system:masters".to_owned())), wanted);
        let pairs = "system:masters".encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        assert_eq!(asked(DnValue::BmpString(rcgen::string::BmpString::from_utf16be(pairs).unwrap())), wanted);
        assert_eq!(asked_subject(b"nothing"), None);
    }
}
