//! TLS: a server's replaceable certificate, and the verification of the peer's certificate.

use std::sync::{Arc, RwLock};

pub use rustls::ServerConfig;
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
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

pub use bundle::merge_bundles;
pub use client::{CertIdentity, ClientCaVerifier, Refusal};
use servers::BundleVerifier;

/// The protocols over TLS, preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Certificates or keys that cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// A text is no valid PEM.
    #[error("{what} cannot be read as PEM: {reason}")]
    Pem {
        /// The expected content.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// The TLS library rejects a certificate or key.
    #[error("{what} cannot be used: {reason}")]
    Unusable {
        /// The rejected item.
        what: &'static str,
        /// The reason.
        reason: String,
    },
}

/// The crypto provider, passed explicitly: a process-wide default would be global state.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The serving certificate. A renewed one can replace it without a restart.
#[derive(Debug)]
pub struct ServingCertificate {
    current: RwLock<Arc<CertifiedKey>>,
}

impl ServingCertificate {
    /// Starts with this certificate.
    ///
    /// # Errors
    /// When certificate and key cannot be read or do not belong together.
    pub fn new(identity: &Identity) -> Result<Self, Error> {
        Ok(Self { current: RwLock::new(certified_key(identity)?) })
    }

    /// Uses another certificate from the next connection on.
    ///
    /// # Errors
    /// As [`ServingCertificate::new`]; the previous certificate then stays in use.
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

/// All certificates of a PEM text, at least one.
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

/// The configuration of a server: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
///
/// Requests a client certificate and accepts any whose key the client holds. The authenticator verifies it
/// with `clients`, so that an untrusted client gets a readable 401 instead of a failed handshake.
///
/// # Panics
/// Never: the provider supports both protocol versions.
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

/// The configuration of a client: TLS 1.2 and 1.3, the trusted CAs or server certificates as PEM, and its own
/// certificate.
///
/// # Errors
/// When one of them cannot be read, or certificate and key do not belong together.
///
/// # Panics
/// Never: the provider supports both protocol versions.
pub fn client_config(ca_bundle: &[u8], own: Option<&Identity>) -> Result<Arc<ClientConfig>, Error> {
    const WHAT: &str = "the CA bundle";
    let verifier = BundleVerifier::new(certificates(WHAT, ca_bundle)?)
        .map_err(|reason| Error::Unusable { what: WHAT, reason })?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("ring supports both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    authenticated(builder, own)
}

/// Like [`client_config`], with roots from elsewhere, such as those of the system.
///
/// # Errors
/// When the client certificate cannot be read or does not belong to its key.
///
/// # Panics
/// Never: the provider supports both protocol versions.
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

/// Adds the client certificate, if there is one.
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
