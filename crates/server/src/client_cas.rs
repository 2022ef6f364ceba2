//! The CAs that verify client certificates. Files and the renewal of the server's own CA change them.

use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc};

use apiserver::auth::ClusterAuthenticationInfo;
use process::{
    Shutdown,
    reload::{self, Content, Current, NamedFile, Reloader, Updater},
    tls::{self, ClientCaVerifier, ServingCertificate},
};
use rustls::{ServerConfig, pki_types::UnixTime};

use crate::auth::unusable;

/// CAs as PEM, with their verifier.
#[derive(Clone, Debug, Default)]
pub struct CaBundle {
    /// The certificates.
    pub pem: String,
    /// Verifies client certificates that one of them signed.
    pub verifier: ClientCaVerifier,
}

impl CaBundle {
    /// Takes a bundle in which at least one CA is valid.
    ///
    /// # Errors
    /// A bundle without a valid CA.
    pub fn from_pem(pem: &[u8]) -> Result<Self, tls::Error> {
        let verifier = ClientCaVerifier::from_pem(pem, UnixTime::now())?;
        Ok(Self { pem: String::from_utf8_lossy(pem).into_owned(), verifier })
    }
}

/// All trusted CAs of clients. Each bundle is replaced on its own.
#[derive(Clone, Debug, Default)]
pub struct ClientCas {
    /// The server's own CA, and replaced CAs that have not expired.
    pub own: CaBundle,
    /// The CAs of `--client-ca-file`.
    pub clients: CaBundle,
    /// The CAs of `--requestheader-client-ca-file`.
    pub front_proxies: CaBundle,
}

impl ClientCas {
    /// The verifier of clients, not of front proxies.
    #[must_use]
    pub fn client_verifier(&self) -> ClientCaVerifier {
        self.own.verifier.union(&self.clients.verifier)
    }

    /// The CAs of clients, not of front proxies, as PEM.
    #[must_use]
    pub fn client_pem(&self) -> String {
        format!("{}{}", self.own.pem, self.clients.pem)
    }
}

/// Follows the CA bundle that a flag names; `bundle` selects the bundle that it replaces.
///
/// # Errors
/// A file that cannot be read or used.
pub fn watch_bundle(
    files: &mut Reloader,
    file: NamedFile,
    cas: &Updater<ClientCas>,
    bundle: fn(&mut ClientCas) -> &mut CaBundle,
) -> Result<(), reload::Error> {
    let (name, cas) = (file.flag.trim_start_matches('-'), cas.clone());
    files.watch(name, vec![file], move |contents: &[Content]| {
        for Content { path, bytes } in contents {
            let loaded = CaBundle::from_pem(bytes).map_err(|error| format!("{}: {error}", unusable(path)))?;
            cas.update(|trusted| {
                let mut changed = trusted.clone();
                *bundle(&mut changed) = loaded;
                changed
            });
        }
        Ok::<_, String>(())
    })
}

/// The values that depend on the trusted CAs, and the task that keeps them up to date.
pub(crate) struct Dependents {
    /// The TLS configuration: handshakes name the CAs, by which clients choose their certificates.
    pub(crate) tls: Option<Current<ServerConfig>>,
    /// The content of the ConfigMap `extension-apiserver-authentication`.
    pub(crate) published: Current<ClusterAuthenticationInfo>,
    pub(crate) task: Pin<Box<dyn Future<Output = Result<(), Infallible>> + Send>>,
}

impl Dependents {
    pub(crate) fn new(
        mut trusted: Current<ClientCas>,
        serving: Option<Arc<ServingCertificate>>,
        publish: impl Fn(&ClientCas) -> ClusterAuthenticationInfo + Send + 'static,
        shutdown: Shutdown,
    ) -> Self {
        let config = move |trusted: &ClientCas, serving: &Arc<ServingCertificate>| {
            Arc::unwrap_or_clone(tls::server_config(Arc::clone(serving), &trusted.client_verifier()))
        };
        let now = trusted.get();
        let (set_published, published) = Updater::new(publish(&now));
        let tls = serving.map(|serving| {
            let (updater, current) = Updater::new(config(&now, &serving));
            (serving, updater, current)
        });
        let current_tls = tls.as_ref().map(|(_, _, current)| current.clone());
        let task = async move {
            loop {
                tokio::select! {
                    () = shutdown.requested() => return Ok(()),
                    () = trusted.changed() => {}
                }
                let now = trusted.get();
                if let Some((serving, updater, _)) = &tls {
                    updater.set(config(&now, serving));
                }
                set_published.set(publish(&now));
            }
        };
        Self { tls: current_tls, published, task: Box::pin(task) }
    }
}
