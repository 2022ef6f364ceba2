//! Whom credentials stand for: certificates and tokens of the command line, in the API server's terms.

use std::sync::Arc;

use apiserver::{
    Peers,
    auth::{Authentication, Connection, Identity, StaticToken as ServerToken},
};
use process::tls::{CertIdentity, ClientCaVerifier};
use rustls::pki_types::UnixTime;

use crate::{access::Proxies, tokens::StaticToken};

/// Judges the certificate of each connection by the trusted authorities: CN is the user, the Os are the groups.
pub(crate) fn by_certificate(clients: ClientCaVerifier, proxies: Option<Proxies>) -> Peers {
    Arc::new(move |chain| {
        let itself = match clients.verify(chain, UnixTime::now()) {
            Ok(CertIdentity { common_name, organizations, uid, fingerprint, .. }) => {
                let mut identity = identity(common_name, uid.unwrap_or_default(), organizations);
                let credential = format!("X509SHA256={fingerprint}");
                identity
                    .extra
                    .insert("authentication.kubernetes.io/credential-id".to_owned(), vec![credential]);
                Connection::Certificate(identity)
            }
            Err(refusal) => Connection::BadCertificate(refusal.to_string()),
        };
        let is_proxy = proxies.as_ref().is_some_and(|Proxies { authorities, names, .. }| {
            let proxy = authorities.verify(chain, UnixTime::now());
            proxy.is_ok_and(|proxy| names.is_empty() || names.contains(&proxy.common_name))
        });
        if is_proxy { Connection::Proxy(Box::new(itself)) } else { itself }
    })
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
