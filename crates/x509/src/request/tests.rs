//! Requests of `openssl req` and rcgen, and texts that hide one request behind another.

use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, DnValue, KeyPair, string::BmpString};
use x509_parser::pem::parse_x509_pem;

use super::*;

const DEV: &str = include_str!("../../../../fixtures/certificates/dev.csr");
const MASTERS: &str = include_str!("../../../../fixtures/certificates/masters.csr");
const TELETEX: &str = include_str!("../../../../fixtures/certificates/teletex.csr");
const TWO_ORGANIZATIONS: &str = include_str!("../../../../fixtures/certificates/two-organizations.csr");

fn read(text: &str) -> Result<CertificateRequest, RequestError> {
    CertificateRequest::from_pem(text.as_bytes())
}

fn with_organization(organization: DnValue) -> Result<CertificateRequest, RequestError> {
    let mut params = CertificateParams::new(["a.example.org".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
    CertificateRequest::from_der(request.der())
}

#[test]
fn subject_names_and_key_are_read_completely() {
    let request = read(TWO_ORGANIZATIONS).unwrap();
    assert_eq!(request.organizations(), ["dev", "ops"]);
    assert_eq!(request.common_name(), "jane");
    assert_eq!(request.alternative_names(), None);
    assert_eq!(request.check_signature(), Ok(()));
    let (_, parsed) = X509CertificationRequest::from_der(request.der()).unwrap();
    assert_eq!(parsed.certification_request_info.subject.as_raw(), request.subject());
    assert_eq!(parsed.certification_request_info.subject_pki.raw, request.public_key());
    assert_eq!(read(MASTERS).unwrap().organizations(), ["system:masters"]);
}

#[test]
fn only_string_types_that_all_readers_agree_about_are_accepted() {
    let masters = || "system:masters".to_owned();
    for value in [
        DnValue::Utf8String(masters()),
        DnValue::PrintableString(masters().try_into().unwrap()),
        DnValue::Ia5String(masters().try_into().unwrap()),
    ] {
        let request = with_organization(value).unwrap();
        assert_eq!(request.organizations(), ["system:masters"]);
        assert!(request.alternative_names().is_some());
    }
    let pairs = masters().encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    for value in [
        DnValue::TeletexString(masters().try_into().unwrap()),
        DnValue::BmpString(BmpString::from_utf16be(pairs).unwrap()),
    ] {
        assert_eq!(with_organization(value), Err(RequestError::SubjectString));
    }
    assert_eq!(read(TELETEX), Err(RequestError::SubjectString));
}

#[test]
fn other_bytes_than_a_request_are_refused() {
    let der = read(DEV).unwrap().der;
    assert_eq!(CertificateRequest::from_der(&[&der[..], &[0]].concat()), Err(RequestError::NotDer));
    assert_eq!(CertificateRequest::from_der(&der[..der.len() - 1]), Err(RequestError::NotDer));
    assert_eq!(
        read("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"),
        Err(RequestError::NotDer)
    );
    assert_eq!(
        read(&DEV.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")),
        Err(RequestError::NotPem)
    );
    let mut forged = der;
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(
        CertificateRequest::from_der(&forged).unwrap().check_signature(),
        Err(RequestError::Signature)
    );
}

#[test]
fn a_request_hidden_in_front_of_another_is_refused() {
    assert_eq!(read(&format!("x{MASTERS}{DEV}")), Err(RequestError::Surrounded));
    assert_eq!(read(&format!("x{MASTERS}")), Err(RequestError::NotPem));
    assert_eq!(read(&format!("{DEV}{MASTERS}")), Err(RequestError::Surrounded));
}

/// Takes the first dashes anywhere in the text as the start of a block, as the most lenient reader would.
fn careless(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (inside, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let compact: String = inside.split_ascii_whitespace().collect();
    base64::Engine::decode(&base64::engine::general_purpose::STANDARD, compact).ok()
}

fn line_based(text: &str) -> Option<Vec<u8>> {
    parse_x509_pem(text.as_bytes()).ok().map(|(_, block)| block.contents)
}

/// Pieces from which an attacker could compose a text.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        MASTERS,
        DEV,
        "-----BEGIN CERTIFICATE REQUEST-----",
        "-----END CERTIFICATE REQUEST-----",
        "-----BEGIN ",
        "-----",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "x",
        "\0",
        "Header: value\n\n",
        "AAAA",
        "\u{feff}",
    ];
    prop_oneof![
        8 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => (0..DEV.len(), prop::sample::select(vec!["\n", " ", "-", "x"]))
            .prop_map(|(at, inserted)| format!("{}{inserted}{}", &DEV[..at], &DEV[at..])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// No reader extracts a request other than the checked one, however it searches for blocks.
    #[test]
    fn every_reader_extracts_the_same_bytes_or_the_text_is_refused(
        front in prop::collection::vec(piece(), 0..4),
        back in prop::collection::vec(piece(), 0..4),
        is_evil: bool,
    ) {
        let block = if is_evil { MASTERS } else { DEV };
        let text = format!("{}{block}{}", front.concat(), back.concat());
        if let Ok(request) = read(&text) {
            prop_assert_eq!(careless(&text), Some(request.der.clone()));
            prop_assert_eq!(line_based(&text), Some(request.der.clone()));
        }
        // White space is the only thing that may surround a block.
        if text.trim() == block.trim() && !text.trim_start_matches(['\n', '\r', ' ', '\t']).is_empty() {
            let before = &text[..text.find('-').unwrap_or_default()];
            prop_assert_eq!(read(&text).is_ok(), before.is_empty() || before.ends_with('\n'));
        }
    }
}
