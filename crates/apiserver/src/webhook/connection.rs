//! One connection to a webhook.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Target;

/// TLS with servers whose certificates come from the authorities of a bundle, or from those of the system.
pub(super) fn trusting(bundle: &[u8]) -> Result<Arc<ClientConfig>, String> {
    if !bundle.trim_ascii().is_empty() {
        return process::tls::client_config(bundle, None)
            .map_err(|error| format!("unable to load root certificates: {error}"));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Why there is no connection, in the words of Kubernetes.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    }
}

/// Connects and shakes hands; what moves the bytes has to be run by somebody.
pub(super) async fn open(
    target: &Target,
    (host, port): (String, u16),
    tls: Arc<ClientConfig>,
) -> Result<(SendRequest<Full<Bytes>>, impl Future<Output = ()> + Send + 'static), String> {
    let name = ServerName::try_from(target.host.clone()).map_err(|error| error.to_string())?;
    let shown = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let stream = TcpStream::connect((host.as_str(), port)).await;
    let stream = stream.map_err(|error| format!("dial tcp {shown}: {}", reason(&error)))?;
    // Requests are small and somebody waits for the answer.
    let _ = stream.set_nodelay(true);
    let stream =
        TlsConnector::from(tls).connect(name, stream).await.map_err(|error| format!("tls: {error}"))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| error.to_string())?;
    let driving = async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a webhook ended early");
        }
    };
    Ok((sender, driving))
}
