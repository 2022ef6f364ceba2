//! Maps credentials to users: client certificates and static tokens, in the API server's terms.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use apiserver::{
    Peers,
    auth::{Authentication, Connection, Identity, Peer, StaticToken as ServerToken},
};
use process::tls::{CertIdentity, ClientCaVerifier};
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::{access::Proxies, tokens::StaticToken};

/// The CAs that client certificates are verified by.
#[derive(Debug)]
struct Trusted {
    clients: ClientCaVerifier,
    proxies: Option<Proxies>,
}

/// Verifies client certificates by the trusted CAs: CN is the user, the Os are the groups.
pub(crate) fn by_certificate(clients: ClientCaVerifier, proxies: Option<Proxies>) -> Peers {
    let trusted = Arc::new(Trusted { clients, proxies });
    Arc::new(move |chain| {
        let chain: Vec<_> = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let verdict = Mutex::new(trusted.verdict(&chain, SystemTime::now()));
        Connection::Peer(Arc::new(ClientChain { chain, trusted: Arc::clone(&trusted), verdict }))
    })
}

/// A chain with the last verdict on it, which holds until a certificate expires.
#[derive(Debug)]
struct ClientChain {
    chain: Vec<CertificateDer<'static>>,
    trusted: Arc<Trusted>,
    verdict: Mutex<Verdict>,
}

#[derive(Debug)]
struct Verdict {
    connection: Arc<Connection>,
    valid_until: UnixTime,
}

impl Peer for ClientChain {
    fn verify(&self, now: SystemTime) -> Arc<Connection> {
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        if unix(now) > verdict.valid_until {
            *verdict = self.trusted.verdict(&self.chain, now);
        }
        Arc::clone(&verdict.connection)
    }
}

impl Trusted {
    fn verdict(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Verdict {
        let now = unix(now);
        // A refusal holds as long as the connection: a client that gets a better certificate connects again.
        let mut valid_until = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
        let itself = match self.clients.verify(chain, now) {
            Ok(verified) => {
                valid_until = valid_until.min(verified.valid_until);
                Connection::Certificate(user(verified))
            }
            Err(refusal) => Connection::BadCertificate(refusal.to_string()),
        };
        let is_proxy = self.proxies.as_ref().is_some_and(|Proxies { authorities, names, .. }| {
            let proxy = authorities.verify(chain, now);
            proxy.is_ok_and(|proxy| {
                valid_until = valid_until.min(proxy.valid_until);
                names.is_empty() || names.contains(&proxy.common_name)
            })
        });
        let connection = Arc::new(if is_proxy { Connection::Proxy(Box::new(itself)) } else { itself });
        Verdict { connection, valid_until }
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

/// Accepts these tokens beside certificates.
pub(crate) fn by_token(tokens: &[StaticToken]) -> Authentication {
    let known = tokens.iter().cloned().map(|StaticToken { token, user, uid, groups }| ServerToken {
        token,
        identity: identity(user, uid, groups),
    });
    Authentication::new(known.collect())
}

fn identity(name: String, uid: String, groups: Vec<String>) -> Identity {
    Identity { uid, ..Identity::authenticated(name, groups) }
}

#[cfg(test)]
mod tests {
    use process::pki::Pki;
    use x509::pem;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn an_expired_client_certificate_is_refused_on_an_open_connection() {
        let (folder, now) = (tempfile::tempdir().unwrap(), SystemTime::now());
        let pki = Pki::ensure(folder.path(), "127.0.0.1", now).unwrap();
        let clients = ClientCaVerifier::from_pem(pki.ca.as_bytes(), unix(now)).unwrap();
        let admin = pem::single(pki.admin.certificate.as_bytes(), pem::CERTIFICATE).unwrap();
        let Connection::Peer(peer) = by_certificate(clients, None)(&[admin.into()]) else { panic!("a peer") };
        for (days, is_known) in [(0, true), (364, true), (366, false), (364, false)] {
            let verdict = peer.verify(now + days * DAY);
            assert_eq!(matches!(*verdict, Connection::Certificate(_)), is_known, "{days}: {verdict:?}");
        }
    }
}
