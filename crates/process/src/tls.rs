//! TLS: the certificate that a server shows, which may change while running, and how the other side's certificate is judged.

use std::sync::{Arc, RwLock};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, ServerConfig,
    client::WantsClientCert,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use thiserror::Error;

use x509::pem;

use crate::{keys, pki::Identity};

mod bundle;
mod client;
mod servers;

pub use bundle::united;
pub use client::{CertIdentity, ClientCaVerifier, Refusal};
use servers::BundleVerifier;

/// The protocols over TLS, the better first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Certificates or keys that cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// A text that should be PEM is not.
    #[error("{what} cannot be read as PEM: {reason}")]
    Pem {
        /// What the text should hold.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The library refuses what was read.
    #[error("{what} cannot be used: {reason}")]
    Unusable {
        /// What was refused.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

/// One provider for all of it, passed explicitly: a process-wide default would be global state.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificate that a server shows. A renewed one can take its place without a restart.
#[derive(Debug)]
pub struct ServingCertificate {
    current: RwLock<Arc<CertifiedKey>>,
}

impl ServingCertificate {
    /// Begins with this certificate.
    ///
    /// # Errors
    /// When certificate and key cannot be read or do not belong together.
    pub fn new(identity: &Identity) -> Result<Self, Error> {
        Ok(Self { current: RwLock::new(certified_key(identity)?) })
    }

    /// Shows another certificate from the next connection on.
    ///
    /// # Errors
    /// As [`ServingCertificate::new`]; the certificate before stays in place.
    pub fn replace(&self, identity: &Identity) -> Result<(), Error> {
        let renewed = certified_key(identity)?;
        *self.current.write().expect("no code panics with the lock held") = renewed;
        Ok(())
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().expect("no code panics with the lock held")))
    }
}

fn certified_key(identity: &Identity) -> Result<Arc<CertifiedKey>, Error> {
    let (chain, key) = chain_and_key("the serving certificate", identity)?;
    let key = CertifiedKey::from_der(chain, key, &provider())
        .map_err(|error| Error::Unusable { what: "the serving certificate", reason: error.to_string() })?;
    Ok(Arc::new(key))
}

fn chain_and_key(
    what: &'static str,
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let chain = certificates(what, identity.certificate.as_bytes())?;
    let key = keys::private_key(identity.key.as_bytes()).ok_or_else(|| Error::Pem {
        what: "its private key",
        reason: "it holds no private key".to_owned(),
    })?;
    Ok((chain, key))
}

/// All certificates of a PEM text, of which there has to be one.
fn certificates(what: &'static str, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates = any_certificates(what, text)?;
    if certificates.is_empty() {
        return Err(Error::Pem { what, reason: "it holds no certificate".to_owned() });
    }
    Ok(certificates)
}

/// All certificates of a PEM text; blocks of other types are skipped.
fn any_certificates(what: &'static str, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let mut found = Vec::new();
    for block in pem::blocks(text) {
        let block = block.map_err(|error| Error::Pem { what, reason: error.to_string() })?;
        if block.label == pem::CERTIFICATE {
            found.push(block.contents.into());
        }
    }
    Ok(found)
}

/// What a server needs for TLS 1.2 and 1.3 with HTTP/2 and HTTP/1.1.
///
/// Clients are asked for a certificate, and any they show is taken if they hold its key. Whether `clients` trusts
/// it is the authenticator's question: its answer is a 401 that a person can read, not a failed handshake.
///
/// # Panics
/// Never: the provider knows both protocol versions.
#[must_use]
pub fn server_config(certificate: Arc<ServingCertificate>, clients: &ClientCaVerifier) -> Arc<ServerConfig> {
    let provider = provider();
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("ring supports both versions")
        .with_client_cert_verifier(clients.handshake_verifier(provider))
        .with_cert_resolver(certificate);
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Arc::new(config)
}

/// What a client needs for TLS 1.2 and 1.3: the authorities or servers that it trusts, as PEM, and whom it says it is.
///
/// # Errors
/// When one of them cannot be read, or certificate and key do not belong together.
///
/// # Panics
/// Never: the provider knows both protocol versions.
pub fn client_config(authorities: &[u8], own: Option<&Identity>) -> Result<Arc<ClientConfig>, Error> {
    const WHAT: &str = "the bundle of authorities";
    let verifier = BundleVerifier::new(certificates(WHAT, authorities)?)
        .map_err(|reason| Error::Unusable { what: WHAT, reason })?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("ring supports both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    authenticated(builder, own)
}

/// As [`client_config`], with roots that were read elsewhere: those of the system.
///
/// # Errors
/// When the client certificate cannot be read, or does not belong to its key.
///
/// # Panics
/// Never: the provider knows both protocol versions.
pub fn client_config_with_roots(
    roots: RootCertStore,
    own: Option<&Identity>,
) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("ring supports both versions")
        .with_root_certificates(roots);
    authenticated(builder, own)
}

/// Gives a client the certificate that it shows, if it has one.
fn authenticated(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    own: Option<&Identity>,
) -> Result<Arc<ClientConfig>, Error> {
    const WHAT: &str = "the client certificate";
    let Some(own) = own else { return Ok(Arc::new(builder.with_no_client_auth())) };
    let (chain, key) = chain_and_key(WHAT, own)?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map(Arc::new).map_err(|error| Error::Unusable { what: WHAT, reason: error.to_string() })
}

#[cfg(test)]
mod tests;
