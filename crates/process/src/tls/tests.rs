//! Handshakes in memory between the server configuration and rustls' own client, and the verification of
//! client certificates.

use std::time::{Duration, SystemTime};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConnection,
    pki_types::{ServerName, UnixTime},
};

use super::*;
use crate::pki::Pki;

fn now() -> UnixTime {
    UnixTime::now()
}

fn pki() -> Pki {
    let folder = tempfile::tempdir().unwrap();
    Pki::ensure(folder.path(), "api.example.org", SystemTime::now()).unwrap()
}

fn server(pki: &Pki) -> Arc<ServerConfig> {
    let certificate = Arc::new(ServingCertificate::new(&pki.server).unwrap());
    server_config(certificate, &ClientCaVerifier::from_pem(pki.ca.as_bytes(), now()).unwrap())
}

fn client(trusted: &Pki, identity: Option<&Identity>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificates("test", trusted.ca.as_bytes()).unwrap().remove(0)).unwrap();
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates("test", identity.certificate.as_bytes()).unwrap();
            let key = keys::private_key(identity.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// Transfers bytes between both ends until neither has more to send.
fn handshake(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    name: &'static str,
) -> Result<ServerConnection, rustls::Error> {
    let name = ServerName::try_from(name).unwrap();
    let mut client = ClientConnection::new(client, name).unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    while client.wants_write() || server.wants_write() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        server.read_tls(&mut &bytes[..]).unwrap();
        server.process_new_packets()?;
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        client.read_tls(&mut &bytes[..]).unwrap();
        client.process_new_packets()?;
    }
    Ok(server)
}

#[test]
fn the_serving_certificate_covers_every_name_of_a_server() {
    let pki = pki();
    for name in ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc", "10.96.0.1"] {
        handshake(client(&pki, None), server(&pki), name).unwrap();
    }
    let connection = handshake(client(&pki, None), server(&pki), "api.example.org").unwrap();
    assert_eq!(connection.alpn_protocol(), Some(&b"h2"[..]));
    handshake(client(&pki, None), server(&pki), "elsewhere.example.org").unwrap_err();
}

#[test]
fn the_administrator_is_seen_with_name_and_group() {
    let pki = pki();
    let connection = handshake(client(&pki, Some(&pki.admin)), server(&pki), "localhost").unwrap();
    let verifier = ClientCaVerifier::from_pem(pki.ca.as_bytes(), now()).unwrap();
    let identity = verifier.verify(connection.peer_certificates().unwrap(), now()).unwrap();
    assert_eq!(identity.common_name, "admin");
    assert_eq!(identity.organizations, ["system:masters"]);
    assert_eq!(identity.uid, None);
    assert_eq!(identity.fingerprint.len(), 64);
    let year = Duration::from_secs(365 * 24 * 60 * 60).as_secs();
    assert!(identity.valid_until.as_secs() > now().as_secs() + year - 60, "{:?}", identity.valid_until);
}

#[test]
fn a_stranger_passes_the_handshake_and_fails_the_verdict() {
    let (pki, other) = (pki(), pki());
    let mut stranger = ClientConfig::clone(&client(&pki, Some(&other.admin)));
    // Clients choose a certificate by the server's hints; this one sends its certificate in any case.
    stranger.client_auth_cert_resolver = Arc::new(AlwaysShow(certified_key(&other.admin).unwrap()));
    let connection = handshake(Arc::new(stranger), server(&pki), "localhost").unwrap();
    let verifier = ClientCaVerifier::from_pem(pki.ca.as_bytes(), now()).unwrap();
    let refusal = verifier.verify(connection.peer_certificates().unwrap(), now()).unwrap_err();
    assert!(matches!(refusal, Refusal::Untrusted(_)), "{refusal}");

    let both = [pki.ca.as_bytes(), other.ca.as_bytes()].concat();
    let verifier = ClientCaVerifier::from_pem(&both, now()).unwrap();
    verifier.verify(connection.peer_certificates().unwrap(), now()).unwrap();
}

#[derive(Debug)]
struct AlwaysShow(Arc<CertifiedKey>);

impl rustls::client::ResolvesClientCert for AlwaysShow {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// The rejection of a certificate of `pki`, this number of days from now.
fn refusal(pki: &Pki, identity: &Identity, days: u64) -> String {
    let chain = certificates("test", identity.certificate.as_bytes()).unwrap();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(now().as_secs() + days * 24 * 60 * 60));
    let verifier = ClientCaVerifier::from_pem(pki.ca.as_bytes(), now()).unwrap();
    verifier.verify(&chain, time).unwrap_err().to_string()
}

#[test]
fn expired_and_server_certificates_name_no_user() {
    let pki = pki();
    let expired = refusal(&pki, &pki.admin, 366);
    assert!(expired.contains("expired"), "{expired}");
    let server = refusal(&pki, &pki.server, 0);
    assert!(server.contains("usage") || server.contains("EKU") || server.contains("purpose"), "{server}");
    let verifier = ClientCaVerifier::from_pem(pki.ca.as_bytes(), now()).unwrap();
    assert_eq!(verifier.verify(&[], now()), Err(Refusal::Absent));
}

#[test]
fn kubernetes_attributes_of_a_subject_become_name_groups_and_uid() {
    let (ca, verifier) = test_ca();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "dev");
    params.distinguished_name.push(rcgen::DnType::CommonName, "jane");
    params.distinguished_name.push(rcgen::DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]), "u-1");
    let identity = verifier.verify(&[issue(&ca, &params)], now()).unwrap();
    assert_eq!((identity.common_name.as_str(), identity.uid.as_deref()), ("jane", Some("u-1")));
    assert_eq!(identity.organizations, ["dev"]);
}

#[test]
fn a_certificate_without_a_common_name_names_no_user() {
    let (ca, verifier) = test_ca();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let refusal = verifier.verify(&[issue(&ca, &params)], now()).unwrap_err();
    assert_eq!(refusal, Refusal::Nameless("it has no CN"));
}

type TestCa = rcgen::CertifiedIssuer<'static, rcgen::KeyPair>;

/// A CA with changed parameters.
fn ca(change: impl FnOnce(&mut rcgen::CertificateParams)) -> TestCa {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    change(&mut params);
    TestCa::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
}

fn bundle(cas: &[&TestCa]) -> String {
    cas.iter().map(|ca| pem::encode(pem::CERTIFICATE, ca.der())).collect()
}

fn test_ca() -> (TestCa, ClientCaVerifier) {
    let ca = ca(|_| {});
    let verifier = ClientCaVerifier::from_pem(bundle(&[&ca]).as_bytes(), now()).unwrap();
    (ca, verifier)
}

fn issue(ca: &TestCa, params: &rcgen::CertificateParams) -> CertificateDer<'static> {
    params.signed_by(&rcgen::KeyPair::generate().unwrap(), ca).unwrap().into()
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    for bundle in ["", "rubbish", &pki().admin.key] {
        assert!(ClientCaVerifier::from_pem(bundle.as_bytes(), now()).is_err(), "{bundle}");
    }
}

#[test]
fn a_renewed_certificate_is_shown_from_the_next_handshake_on() {
    let (old, new) = (pki(), pki());
    let certificate = Arc::new(ServingCertificate::new(&old.server).unwrap());
    let clients = ClientCaVerifier::from_pem(old.ca.as_bytes(), now()).unwrap();
    let config = server_config(Arc::clone(&certificate), &clients);
    handshake(client(&new, None), Arc::clone(&config), "localhost").unwrap_err();
    certificate.replace(&new.server).unwrap();
    handshake(client(&new, None), config, "localhost").unwrap();
}

/// A client certificate for a member of `system:masters` that never expires.
fn master(ca: &TestCa) -> CertificateDer<'static> {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
    issue(ca, &params)
}

fn expires(year: i32) -> impl FnOnce(&mut rcgen::CertificateParams) {
    move |params| params.not_after = rcgen::date_time_ymd(year, 1, 1)
}

fn in_year(year: i32) -> UnixTime {
    let seconds = rcgen::date_time_ymd(year, 6, 1).unix_timestamp();
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(seconds).unwrap()))
}

#[test]
fn a_bundle_without_a_valid_ca_is_refused_with_the_reason() {
    let leaf = ca(|params| params.is_ca = rcgen::IsCa::ExplicitNoCa);
    let plain = ca(|params| params.is_ca = rcgen::IsCa::NoCa);
    let signs_nothing = ca(|params| params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature]);
    let expired = ca(expires(2020));
    let future = ca(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1));
    for (ca, reason) in [
        (&leaf, "CA:TRUE"),
        (&plain, "CA:TRUE"),
        (&signs_nothing, "keyCertSign"),
        (&expired, "expired"),
        (&future, "not valid yet"),
    ] {
        let error = ClientCaVerifier::from_pem(bundle(&[ca]).as_bytes(), now()).unwrap_err().to_string();
        assert!(error.contains("no valid CA certificate") && error.contains(reason), "{error}");
    }
}

#[test]
fn an_expired_ca_and_a_leaf_in_a_bundle_with_a_valid_ca_grant_nothing() {
    let leaf = ca(|params| params.is_ca = rcgen::IsCa::ExplicitNoCa);
    let (expired, valid) = (ca(expires(2020)), ca(|_| {}));
    let verifier = ClientCaVerifier::from_pem(bundle(&[&leaf, &expired, &valid]).as_bytes(), now()).unwrap();
    assert!(verifier.verify(&[master(&valid)], now()).is_ok());
    for other in [&leaf, &expired] {
        let refusal = verifier.verify(&[master(other)], now()).unwrap_err();
        assert!(matches!(refusal, Refusal::Untrusted(_)), "{refusal}");
    }
}

#[test]
fn a_ca_that_expires_while_the_server_runs_is_no_longer_trusted() {
    let ca = ca(expires(2060));
    let verifier = ClientCaVerifier::from_pem(bundle(&[&ca]).as_bytes(), now()).unwrap();
    let identity = verifier.verify(&[master(&ca)], in_year(2059)).unwrap();
    let end = rcgen::date_time_ymd(2060, 1, 1).unix_timestamp();
    assert_eq!(i64::try_from(identity.valid_until.as_secs()), Ok(end), "the verdict ends with the CA");
    assert_eq!(verifier.verify(&[master(&ca)], in_year(2060)), Err(Refusal::NoCa));
}
