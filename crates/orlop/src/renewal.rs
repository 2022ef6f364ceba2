//! Certificates of a server that runs for months: renewed in time, without a restart.

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::SystemTime};

use process::{
    Shutdown,
    pki::{self, LOOK_INTERVAL, Pki},
    tls::ServingCertificate,
};

use crate::kubeconfig;

/// What a renewal has to put in place.
pub(crate) struct Renewal {
    pub(crate) folder: PathBuf,
    pub(crate) host: String,
    pub(crate) kubeconfig: PathBuf,
    /// HOST:PORT for the kubeconfig.
    pub(crate) address: String,
}

impl Renewal {
    /// Looks once a day. A failure is logged and tried again the next day: certificates last for months after the
    /// first try.
    pub(crate) async fn run(
        self,
        serving: Arc<ServingCertificate>,
        shutdown: Shutdown,
    ) -> Result<(), Infallible> {
        loop {
            tokio::select! {
                () = shutdown.requested() => return Ok(()),
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            if let Err(error) = self.look(&serving) {
                tracing::error!(%error, "certificates could not be renewed");
            }
        }
    }

    fn look(&self, serving: &ServingCertificate) -> anyhow::Result<()> {
        let pki: Pki = pki::Pki::ensure(&self.folder, &self.host, SystemTime::now())?;
        serving.replace(&pki.server)?;
        kubeconfig::write(&self.kubeconfig, &self.address, &pki)?;
        Ok(())
    }
}
