//! Maps credentials to users: client certificates and static tokens, in the API server's terms.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use apiserver::{
    Peers,
    auth::{Connection, Identity, Peer, StaticToken as ServerToken},
};
use process::{reload::Current, tls::CertIdentity};
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::{tokens::StaticToken, trust::Trusted};

/// The verifiers of client certificates.
#[derive(Debug)]
struct Verifier {
    trusted: Current<Trusted>,
    /// The names of front proxies, where there are such; empty for any.
    proxy_names: Option<Vec<String>>,
}

/// Verifies client certificates by the trusted CAs: CN is the user, the Os are the groups.
pub(crate) fn by_certificate(trusted: Current<Trusted>, proxy_names: Option<Vec<String>>) -> Peers {
    let verifier = Arc::new(Verifier { trusted, proxy_names });
    Arc::new(move |chain| {
        let chain: Vec<_> = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let verdict = Mutex::new(verifier.verdict(&chain, SystemTime::now()));
        Connection::Peer(Arc::new(ClientChain { chain, verifier: Arc::clone(&verifier), verdict }))
    })
}

/// A chain with the last verdict on it, which holds until a certificate expires or the trusted CAs change.
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
    trusted: Arc<Trusted>,
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
        let is_proxy = self.proxy_names.as_ref().is_some_and(|names| {
            let proxy = trusted.proxies.verifier.verify(chain, now);
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
    let mut identity = identity(common_name, uid.unwrap_or_default(), organizations);
    let credential = format!("X509SHA256={fingerprint}");
    identity.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![credential]);
    identity
}

/// The users of a token file.
pub(crate) fn tokens(tokens: Vec<StaticToken>) -> Vec<ServerToken> {
    let known = tokens.into_iter().map(|StaticToken { token, user, uid, groups }| ServerToken {
        token,
        identity: identity(user, uid, groups),
    });
    known.collect()
}

fn identity(name: String, uid: String, groups: Vec<String>) -> Identity {
    Identity { uid, ..Identity::authenticated(name, groups) }
}

#[cfg(test)]
mod tests {
    use process::{pki::Pki, reload::Updater};
    use x509::pem;

    use super::*;
    use crate::trust::CaBundle;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// The certificates of a server, and its administrator on a connection to a server that trusts these CAs.
    fn admin(trusted: &Current<Trusted>, pki: &Pki) -> Arc<dyn Peer> {
        let chain = pem::single(pki.admin.certificate.as_bytes(), pem::CERTIFICATE).unwrap();
        match by_certificate(trusted.clone(), None)(&[chain.into()]) {
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
        let peer = admin(&Current::fixed(Trusted { own, ..Trusted::default() }), &pki);
        for (days, expected) in [(0, true), (364, true), (366, false), (364, false)] {
            assert_eq!(is_known(&peer, now + days * DAY), expected, "{days}");
        }
    }

    #[test]
    fn a_reloaded_client_ca_counts_on_open_connections() {
        let ([first, second], now) = ([pki(), pki()], SystemTime::now());
        let bundle = |pki: &Pki| CaBundle::from_pem(pki.ca.as_bytes()).unwrap();
        let trusting = |pki: &Pki| Trusted { clients: bundle(pki), ..Trusted::default() };
        let (updater, trusted) = Updater::new(trusting(&first));
        let peers = [admin(&trusted, &first), admin(&trusted, &second)];
        let known = || peers.each_ref().map(|peer| is_known(peer, now));
        assert_eq!(known(), [true, false]);
        updater.set(trusting(&second));
        assert_eq!(known(), [false, true]);
        updater.update(|trusted| Trusted { own: bundle(&first), ..trusted.clone() });
        assert_eq!(known(), [true, true]);
    }
}
