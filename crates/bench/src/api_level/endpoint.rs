//! The address of a server and the client's credentials.

use std::sync::Arc;

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use regex::Regex;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};
use x509::pem;

/// The client's credentials and trust, each as PEM.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The CA of the server's certificate.
    pub ca: String,
    /// The client's certificate.
    pub certificate: String,
    /// The key of the client's certificate.
    pub key: String,
}

/// A server to connect to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `HOST:PORT`.
    pub address: String,
    /// The server name to verify.
    pub name: ServerName<'static>,
    /// Trusted CA and client certificate.
    pub tls: Arc<ClientConfig>,
}

fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>> {
    let blocks = pem::blocks(text.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    Ok(blocks.into_iter().map(|block| block.contents.into()).collect())
}

impl Endpoint {
    /// The server at an address.
    pub fn new(address: &str, credentials: &Credentials) -> Result<Self> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = ServerName::try_from(host.to_owned()).context("the server's address is no name")?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&credentials.ca)? {
            roots.add(certificate)?;
        }
        let mut keys = pem::blocks(credentials.key.as_bytes()).flatten().map(|block| block.contents);
        let key = keys.find_map(|key| PrivateKeyDer::try_from(key).ok()).context("the client's key")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(certificates(&credentials.certificate)?, key)?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { address: address.to_owned(), name, tls: Arc::new(tls) })
    }

    /// The same server, without a client certificate.
    pub fn without_certificate(&self) -> Self {
        let mut tls = (*self.tls).clone();
        tls.client_auth_cert_resolver = Arc::new(NoCertificate);
        Self { tls: Arc::new(tls), ..self.clone() }
    }

    /// The server of a kubeconfig with inline certificates.
    ///
    /// Searches for the four entries, which is sufficient for a file with one cluster and one user.
    pub fn from_kubeconfig(text: &str) -> Result<Self> {
        let server = entry(text, "server")?;
        let address = server.strip_prefix("https://").context("the server's address is not https")?;
        let decoded = |name| -> Result<String> {
            let bytes =
                BASE64_STANDARD.decode(entry(text, name)?).with_context(|| format!("{name} is no base64"))?;
            Ok(String::from_utf8(bytes)?)
        };
        let credentials = Credentials {
            ca: decoded("certificate-authority-data")?,
            certificate: decoded("client-certificate-data")?,
            key: decoded("client-key-data")?,
        };
        Self::new(address, &credentials)
    }
}

/// A client certificate resolver without a certificate.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

fn entry<'a>(text: &'a str, name: &str) -> Result<&'a str> {
    let pattern = Regex::new(&format!(r#"(?m)\b{name}"?:\s*"?([^\s",}}]+)"#))?;
    let found = pattern.captures(text).and_then(|found| found.get(1));
    Ok(found.with_context(|| format!("the kubeconfig has no {name}"))?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_in_block_and_in_flow_style() {
        let block = "clusters:\n- name: a\n  cluster:\n    server: https://127.0.0.1:1\n";
        assert_eq!(entry(block, "server").unwrap(), "https://127.0.0.1:1");
        let flow = r#"clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]"#;
        assert_eq!(entry(flow, "server").unwrap(), "https://127.0.0.1:1");
        assert!(entry(block, "client-key-data").is_err());
    }
}
