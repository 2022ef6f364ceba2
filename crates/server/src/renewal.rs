//! Certificate renewal without a restart.

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::SystemTime};

use process::{
    Shutdown,
    pki::{CHECK_INTERVAL, Pki},
    reload::Updater,
    supervisor::TaskError,
    tls::ServingCertificate,
};

use crate::{
    client_cas::{CaBundle, ClientCas},
    kubeconfig,
};

/// The files that a renewal writes.
pub(crate) struct Renewal {
    /// The folder of the certificates.
    pub(crate) folder: PathBuf,
    /// The name or address that the server listens on.
    pub(crate) host: String,
    pub(crate) kubeconfig: PathBuf,
    /// HOST:PORT for the kubeconfig.
    pub(crate) address: String,
}

/// The parts of the running server that a renewal updates.
pub(crate) struct Renewed {
    pub(crate) serving: Arc<ServingCertificate>,
    pub(crate) client_cas: Updater<ClientCas>,
    /// The CA with its key, for the controllers that sign certificates and publish the CA.
    pub(crate) pki: Updater<Pki>,
}

impl Renewal {
    /// Checks the certificates once a day. A failure is retried the next day: certificates are renewed months before they expire.
    pub(crate) async fn run(self, renewed: Renewed, shutdown: Shutdown) -> Result<(), Infallible> {
        loop {
            tokio::select! {
                () = shutdown.requested() => return Ok(()),
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            if let Err(error) = self.renew(&renewed, SystemTime::now()) {
                tracing::error!(%error, "cannot renew certificates; retrying in a day");
            }
        }
    }

    /// Renews the certificates that are due. A new CA signs from now on; the old one stays trusted until it expires.
    fn renew(&self, renewed: &Renewed, now: SystemTime) -> Result<(), TaskError> {
        let pki = Pki::ensure(&self.folder, &self.host, now)?;
        let trusted = pki.trusted();
        if renewed.client_cas.current().get().own.pem != trusted {
            let own = CaBundle::from_pem(trusted.as_bytes())?;
            renewed.client_cas.update(|trusted| ClientCas { own, ..trusted.clone() });
        }
        renewed.serving.replace(&pki.server)?;
        kubeconfig::write(&self.kubeconfig, &self.address, &pki)?;
        // A new value restarts the controllers.
        if renewed.pki.current().get().trusted() != trusted {
            renewed.pki.set(pki);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use apiserver::auth::Connection;
    use x509::pem;

    use super::*;
    use crate::client_certificates;

    fn is_trusted(renewed: &Renewed, certificate: &str) -> bool {
        let chain = pem::single(certificate.as_bytes(), pem::CERTIFICATE).unwrap();
        match client_certificates::authenticator(renewed.client_cas.current(), None)(&[chain.into()]) {
            Connection::Peer(peer) => matches!(*peer.verify(SystemTime::now()), Connection::Certificate(_)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_renewed_ca_is_trusted_beside_the_old_one_and_signs_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let renewal = Renewal {
            folder: folder.path().join("pki"),
            host: "127.0.0.1".to_owned(),
            kubeconfig: folder.path().join("kubeconfig"),
            address: "127.0.0.1:6443".to_owned(),
        };
        // A CA lasts ten years and is replaced a year before its end: this one is due.
        let (now, year) = (SystemTime::now(), std::time::Duration::from_secs(365 * 24 * 60 * 60));
        let first = Pki::ensure(&renewal.folder, &renewal.host, now - 9 * year - year / 2).unwrap();
        let own = CaBundle::from_pem(first.trusted().as_bytes()).unwrap();
        let renewed = Renewed {
            serving: Arc::new(ServingCertificate::new(&first.server).unwrap()),
            client_cas: Updater::new(ClientCas { own, ..ClientCas::default() }).0,
            pki: Updater::new(first.clone()).0,
        };
        // A certificate that the old CA signed recently.
        let request = include_bytes!("../../../fixtures/certificates/dev.csr");
        let request = x509::CertificateRequest::from_pem(request).unwrap();
        let old = first.signer.client(&request, &[], now, year).unwrap();
        assert!(is_trusted(&renewed, &old));

        renewal.renew(&renewed, now).unwrap();
        let pki = renewed.pki.current().get();
        assert_ne!(pki.ca, first.ca);
        let new = pki.signer.client(&request, &[], now, year).unwrap();
        assert!(
            is_trusted(&renewed, &old)
                && is_trusted(&renewed, &new)
                && is_trusted(&renewed, &pki.admin.certificate)
        );
        let kubeconfig = std::fs::read_to_string(&renewal.kubeconfig).unwrap();
        assert!(kubeconfig.contains("client-certificate-data"), "{kubeconfig}");

        renewal.renew(&renewed, now).unwrap();
        assert!(Arc::ptr_eq(&pki, &renewed.pki.current().get()), "nothing new, nothing set");
    }
}
