//! The certificate of a webhook server: created and shared by the server itself, or kept in a folder by cert-manager.
//!
//! [`ManagedCertificate`] keeps a CA and a serving certificate in a Secret that all replicas share, replaces them before they expire, and writes
//! the CA bundle into webhook configurations and CRDs. A new CA is in the bundle for a while before a certificate of it is served, and the old
//! one stays in it until it expires, so that the API server trusts every replica at all times.
//!
//! [`FolderCertificate`] serves `tls.crt` and `tls.key` of a folder, and loads them again when they change. The writer of the files provides the
//! CA bundle, too: cert-manager does so for configurations with the annotation of [`inject_ca_from`].

mod ca_bundle;
mod managed;
mod material;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use process::Shutdown;
use process::pki::{Identity, expires_at};
use process::reload::{self, Content, NamedFile, Reloader};
use process::tls::{self, ClientCaVerifier, ServingCertificate};
use serde_json::{Value, json};
use tasks::TaskFailure;
use thiserror::Error;
use tokio::sync::watch;

pub use self::ca_bundle::CaTarget;
pub use self::managed::ManagedCertificate;
pub use self::material::{InvalidLifetimes, Lifetimes};

/// The annotation by which cert-manager writes the CA bundle of a Certificate into a webhook configuration or a CRD.
pub const INJECT_CA_FROM: &str = "cert-manager.io/inject-ca-from";

/// Annotates the manifest of a webhook configuration or a CRD, so that cert-manager writes the CA bundle of a Certificate into it.
pub fn inject_ca_from(manifest: &mut Value, namespace: &str, certificate: &str) {
    let value = format!("{namespace}/{certificate}");
    match manifest.pointer_mut("/metadata/annotations") {
        Some(Value::Object(annotations)) => drop(annotations.insert(INJECT_CA_FROM.to_owned(), value.into())),
        _ => manifest["metadata"]["annotations"] = json!({INJECT_CA_FROM: value}),
    }
}

/// A certificate that cannot be served or looked after.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The files of a folder cannot be read or used.
    #[error(transparent)]
    Folder(#[from] reload::Error),
    /// An informer panicked: the certificate would no longer be looked after.
    #[error(transparent)]
    Informer(#[from] TaskFailure),
}

/// The source of a webhook server's certificate.
pub enum CertificateSource {
    /// The server creates the certificate.
    Managed(Box<ManagedCertificate>),
    /// The certificate is in a folder.
    Folder(FolderCertificate),
}

impl From<ManagedCertificate> for CertificateSource {
    fn from(managed: ManagedCertificate) -> Self {
        Self::Managed(Box::new(managed))
    }
}

impl From<FolderCertificate> for CertificateSource {
    fn from(folder: FolderCertificate) -> Self {
        Self::Folder(folder)
    }
}

impl CertificateSource {
    pub(super) fn served(&self) -> ServedCertificate {
        match self {
            Self::Managed(managed) => managed.served(),
            Self::Folder(folder) => folder.served(),
        }
    }

    /// Looks after the certificate until a stop is requested.
    pub(super) async fn keep(self, shutdown: Shutdown) -> Result<(), CertificateError> {
        match self {
            Self::Managed(managed) => Ok(managed.keep(shutdown).await?),
            Self::Folder(folder) => folder.keep(shutdown).await,
        }
    }
}

/// The certificate that a server serves at present. Clones are the same.
#[derive(Clone, Debug)]
pub struct ServedCertificate(Arc<watch::Sender<Option<Served>>>);

#[derive(Clone, Debug)]
struct Served {
    certificate: Arc<ServingCertificate>,
    /// The end of its validity, in seconds since the epoch.
    expires: i64,
}

impl Default for ServedCertificate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl ServedCertificate {
    /// Whether a valid certificate is served, for a health check.
    ///
    /// # Errors
    /// There is none yet, or it has expired.
    pub fn check(&self) -> Result<(), String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        match &*self.0.borrow() {
            None => Err("there is no serving certificate yet".to_owned()),
            Some(served) if u64::try_from(served.expires).is_ok_and(|end| end > now) => Ok(()),
            Some(_) => Err("the serving certificate has expired".to_owned()),
        }
    }

    /// Waits until there is a certificate.
    pub async fn ready(&self) {
        // This holds the sender, so that the channel is open.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }

    /// Serves another certificate from the next connection on.
    fn set(&self, identity: &Identity) -> Result<(), tls::Error> {
        let expires = expires_at(&identity.certificate).unwrap_or_default();
        let present = self.0.borrow().clone();
        let certificate = match present {
            Some(Served { certificate, .. }) => {
                certificate.replace(identity)?;
                certificate
            }
            None => Arc::new(ServingCertificate::new(identity)?),
        };
        self.0.send_replace(Some(Served { certificate, expires }));
        Ok(())
    }

    /// The TLS configuration of a server, as soon as there is a certificate.
    pub(super) async fn tls_config(&self) -> Arc<tls::ServerConfig> {
        let mut receiver = self.0.subscribe();
        loop {
            if let Some(Served { certificate, .. }) = receiver.borrow_and_update().clone() {
                return tls::server_config(certificate, &ClientCaVerifier::trusting_none());
            }
            // This holds the sender, so that the channel is open.
            let _ = receiver.changed().await;
        }
    }
}

/// The certificate in a folder, such as one that cert-manager keeps and a pod mounts.
#[derive(Debug)]
pub struct FolderCertificate {
    folder: PathBuf,
    served: ServedCertificate,
}

impl FolderCertificate {
    /// The certificate `tls.crt` with the key `tls.key` in a folder.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_owned(), served: ServedCertificate::default() }
    }

    /// The certificate that is served, for a health check.
    #[must_use]
    pub fn served(&self) -> ServedCertificate {
        self.served.clone()
    }

    async fn keep(self, shutdown: Shutdown) -> Result<(), CertificateError> {
        let file = |name: &str| NamedFile { flag: "the certificate folder", path: self.folder.join(name) };
        let (mut reloader, served) = (Reloader::default(), self.served);
        let load = move |contents: &[Content]| {
            let text = |at: usize| String::from_utf8_lossy(&contents[at].bytes).into_owned();
            served.set(&Identity { certificate: text(0), key: text(1) })
        };
        reloader.watch("webhook certificate", vec![file("tls.crt"), file("tls.key")], load)?;
        let ended: Result<(), Infallible> = reloader.run(reload::POLL_INTERVAL, |_, _| {}, shutdown).await;
        let Ok(()) = ended;
        Ok(())
    }
}
