//! Whom credentials stand for: certificates and tokens of the command line, in the API server's terms.

use std::sync::Arc;

use apiserver::{
    Peers,
    auth::{Authentication, Connection, Identity, StaticToken as ServerToken},
};
use process::tls::{CertIdentity, ClientCaVerifier};
use rustls::pki_types::UnixTime;

use crate::tokens::StaticToken;

/// Judges the certificate of each connection by the trusted authorities: CN is the user, the Os are the groups.
pub(crate) fn by_certificate(clients: ClientCaVerifier) -> Peers {
    Arc::new(move |chain| match clients.verify(chain, UnixTime::now()) {
        Ok(CertIdentity { common_name, organizations, uid, .. }) => {
            Connection::Certificate(identity(common_name, uid.unwrap_or_default(), organizations))
        }
        Err(refusal) => Connection::BadCertificate(refusal.to_string()),
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
