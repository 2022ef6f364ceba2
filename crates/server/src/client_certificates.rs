//! Client certificate authentication: CN is the user, the Os are the groups.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use apiserver::{
    Peers,
    auth::{Connection, Identity, Peer},
};
use process::{reload::Current, tls::CertIdentity};
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::client_cas::ClientCas;

/// The verifiers of client certificates.
#[derive(Debug)]
struct Verifier {
    trusted: Current<ClientCas>,
    /// The names of front proxies, if there are front proxies; empty for any.
    front_proxy_names: Option<Vec<String>>,
}

/// Authenticates connections by the trusted CAs.
pub(crate) fn authenticator(trusted: Current<ClientCas>, front_proxy_names: Option<Vec<String>>) -> Peers {
    let verifier = Arc::new(Verifier { trusted, front_proxy_names });
    Arc::new(move |chain| {
        let chain: Vec<_> = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let verdict = Mutex::new(verifier.verdict(&chain, SystemTime::now()));
        Connection::Peer(Arc::new(ClientChain { chain, verifier: Arc::clone(&verifier), verdict }))
    })
}

/// A certificate chain with its last verdict, which holds until a certificate expires or the trusted CAs change.
#[derive(Debug)]
struct ClientChain {
    chain: Vec<CertificateDer<'static>>,
    verifier: Arc<Verifier>,
    verdict: Mutex<Verdict>,
}

#[derive(Debug)]
struct Verdict {
    connection: Arc<Connection>,
    valid_until: UnixTime,
    trusted: Arc<ClientCas>,
}

impl Peer for ClientChain {
    fn verify(&self, now: SystemTime) -> Arc<Connection> {
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        let is_outdated = !Arc::ptr_eq(&verdict.trusted, &self.verifier.trusted.get());
        if is_outdated || unix(now) > verdict.valid_until {
            *verdict = self.verifier.verdict(&self.chain, now);
        }
        Arc::clone(&verdict.connection)
    }
}

impl Verifier {
    fn verdict(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Verdict {
        let (now, trusted) = (unix(now), self.trusted.get());
        // A refusal holds as long as the connection and the CAs: a client that gets a better certificate connects again.
        let mut valid_until = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
        let itself = match trusted.client_verifier().verify(chain, now) {
            Ok(verified) => {
                valid_until = valid_until.min(verified.valid_until);
                Connection::Certificate(user(verified))
            }
            Err(refusal) => Connection::BadCertificate(refusal.to_string()),
        };
        let is_proxy = self.front_proxy_names.as_ref().is_some_and(|names| {
            let proxy = trusted.front_proxies.verifier.verify(chain, now);
            proxy.is_ok_and(|proxy| {
                valid_until = valid_until.min(proxy.valid_until);
                names.is_empty() || names.contains(&proxy.common_name)
            })
        });
        let connection = Arc::new(if is_proxy { Connection::Proxy(Box::new(itself)) } else { itself });
        Verdict { connection, valid_until, trusted }
    }
}

fn unix(time: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn user(verified: CertIdentity) -> Identity {
    let CertIdentity { common_name, organizations, uid, fingerprint, .. } = verified;
    let mut identity = Identity::authenticated(common_name, organizations);
    identity.uid = uid.unwrap_or_default();
    let credential = format!("X509SHA256={fingerprint}");
    identity.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![credential]);
    identity
}

#[cfg(test)]
mod tests {
    use process::{pki::Pki, reload::Updater};
    use x509::pem;

    use super::*;
    use crate::client_cas::CaBundle;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A connection of the administrator of `pki` to a server that trusts these CAs.
    fn admin(trusted: &Current<ClientCas>, pki: &Pki) -> Arc<dyn Peer> {
        let chain = pem::single(pki.admin.certificate.as_bytes(), pem::CERTIFICATE).unwrap();
        match authenticator(trusted.clone(), None)(&[chain.into()]) {
            Connection::Peer(peer) => peer,
            other => panic!("{other:?}"),
        }
    }

    fn pki() -> Pki {
        Pki::ensure(tempfile::tempdir().unwrap().path(), "127.0.0.1", SystemTime::now()).unwrap()
    }

    fn is_known(peer: &Arc<dyn Peer>, now: SystemTime) -> bool {
        matches!(*peer.verify(now), Connection::Certificate(_))
    }

    #[test]
    fn an_expired_client_certificate_is_refused_on_an_open_connection() {
        let (pki, now) = (pki(), SystemTime::now());
        let own = CaBundle::from_pem(pki.ca.as_bytes()).unwrap();
        let peer = admin(&Current::fixed(ClientCas { own, ..ClientCas::default() }), &pki);
        for (days, expected) in [(0, true), (364, true), (366, false), (364, false)] {
            assert_eq!(is_known(&peer, now + days * DAY), expected, "{days}");
        }
    }

    #[test]
    fn a_reloaded_client_ca_counts_on_open_connections() {
        let ([first, second], now) = ([pki(), pki()], SystemTime::now());
        let bundle = |pki: &Pki| CaBundle::from_pem(pki.ca.as_bytes()).unwrap();
        let trusting = |pki: &Pki| ClientCas { clients: bundle(pki), ..ClientCas::default() };
        let (updater, trusted) = Updater::new(trusting(&first));
        let peers = [admin(&trusted, &first), admin(&trusted, &second)];
        let known = || peers.each_ref().map(|peer| is_known(peer, now));
        assert_eq!(known(), [true, false]);
        updater.set(trusting(&second));
        assert_eq!(known(), [false, true]);
        updater.update(|trusted| ClientCas { own: bundle(&first), ..trusted.clone() });
        assert_eq!(known(), [true, true]);
    }
}
