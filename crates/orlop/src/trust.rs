//! The CAs by which client certificates are verified, as files and the renewal of the server's own CA change them.

use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc};

use anyhow::Result;
use apiserver::auth::ClusterAuthenticationInfo;
use process::{
    Shutdown,
    reload::{Content, Current, NamedFile, Reloader, Updater},
    tls::{self, ClientCaVerifier, ServingCertificate},
};
use rustls::{ServerConfig, pki_types::UnixTime};

use crate::access::unusable;

/// CAs as PEM, and what verifies by them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaBundle {
    pub(crate) pem: String,
    pub(crate) verifier: ClientCaVerifier,
}

impl CaBundle {
    /// Takes a bundle in which at least one CA is valid.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self, tls::Error> {
        let verifier = ClientCaVerifier::from_pem(pem, UnixTime::now())?;
        Ok(Self { pem: String::from_utf8_lossy(pem).into_owned(), verifier })
    }
}

/// All CAs that are trusted at a moment. Each part is replaced on its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trusted {
    /// The server's own CA, and those before it that have not expired.
    pub(crate) own: CaBundle,
    /// `--client-ca-file`
    pub(crate) clients: CaBundle,
    /// `--requestheader-client-ca-file`
    pub(crate) proxies: CaBundle,
}

impl Trusted {
    /// The verifier of clients that speak for themselves, not of proxies.
    pub(crate) fn client_verifier(&self) -> ClientCaVerifier {
        self.own.verifier.union(&self.clients.verifier)
    }

    /// The CAs of clients as PEM.
    pub(crate) fn client_pem(&self) -> String {
        format!("{}{}", self.own.pem, self.clients.pem)
    }
}

/// Follows the CA bundle that a flag names; `place` says which part of the trusted CAs it is.
pub(crate) fn watch_bundle(
    files: &mut Reloader,
    file: NamedFile,
    trust: &Updater<Trusted>,
    place: fn(&mut Trusted) -> &mut CaBundle,
) -> Result<()> {
    let (name, trust) = (file.flag.trim_start_matches('-'), trust.clone());
    files.watch(name, vec![file], move |contents: &[Content]| {
        for Content { path, bytes } in contents {
            let bundle = CaBundle::from_pem(bytes).map_err(|error| format!("{}: {error}", unusable(path)))?;
            trust.update(|trusted| {
                let mut changed = trusted.clone();
                *place(&mut changed) = bundle;
                changed
            });
        }
        Ok::<_, String>(())
    })?;
    Ok(())
}

/// The dependents of the trusted CAs, and the task that keeps them up to date.
pub(crate) struct Followers {
    /// Handshakes name the CAs to clients, which choose their certificates by that.
    pub(crate) tls: Current<ServerConfig>,
    /// The trusted CAs as extension API servers are told of them.
    pub(crate) published: Current<ClusterAuthenticationInfo>,
    pub(crate) task: Pin<Box<dyn Future<Output = Result<(), Infallible>> + Send>>,
}

impl Followers {
    pub(crate) fn of(
        mut trusted: Current<Trusted>,
        serving: Arc<ServingCertificate>,
        publish: impl Fn(&Trusted) -> ClusterAuthenticationInfo + Send + 'static,
        shutdown: Shutdown,
    ) -> Self {
        let config = move |trusted: &Trusted| {
            Arc::unwrap_or_clone(tls::server_config(Arc::clone(&serving), &trusted.client_verifier()))
        };
        let now = trusted.get();
        let ((set_tls, tls), (set_published, published)) =
            (Updater::new(config(&now)), Updater::new(publish(&now)));
        let task = async move {
            loop {
                tokio::select! {
                    () = shutdown.requested() => return Ok(()),
                    () = trusted.changed() => {}
                }
                let now = trusted.get();
                set_tls.set(config(&now));
                set_published.set(publish(&now));
            }
        };
        Self { tls, published, task: Box::pin(task) }
    }
}
