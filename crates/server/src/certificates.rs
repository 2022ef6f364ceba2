//! The certificates of a server, from files or in memory.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use process::{
    files::{self, Access},
    pki::{self, Identity, Pki},
    tls::ServingCertificate,
};

use crate::{Error, client_cas::CaBundle, config::Certificates};

/// The keys in `FOLDER/pki`.
const KEYS: [&str; 4] = ["ca.key", "server.key", "admin.key", "sa.key"];

/// The certificates of a starting server.
pub(crate) struct LoadedCertificates {
    /// The CA with the certificates that it signed; `None` for a server without a CA.
    pub(crate) pki: Option<Pki>,
    /// The CAs of `pki`, for client certificates.
    pub(crate) own: CaBundle,
    pub(crate) serving: Arc<ServingCertificate>,
}

impl LoadedCertificates {
    /// Reads or creates the certificates for a server that listens on `host`. Blocks on the disk.
    pub(crate) fn load(certificates: &Certificates, host: &str) -> Result<Self, Error> {
        let now = SystemTime::now();
        let pki = match certificates {
            Certificates::Ephemeral => Pki::ephemeral(host, now)?,
            Certificates::Folder(folder) => Pki::ensure(&pki_folder(folder), host, now)?,
            Certificates::Serving(identity) => return Self::without_ca(identity),
            Certificates::ServingFolder(folder) => return Self::without_ca(&serving_pair(folder, host)?),
        };
        let own = CaBundle::from_pem(pki.trusted().as_bytes())?;
        let serving = Arc::new(ServingCertificate::new(&pki.server)?);
        Ok(Self { pki: Some(pki), own, serving })
    }

    fn without_ca(identity: &Identity) -> Result<Self, Error> {
        let serving = Arc::new(ServingCertificate::new(identity)?);
        Ok(Self { pki: None, own: CaBundle::default(), serving })
    }
}

/// The folder of certificates and keys.
pub(crate) fn pki_folder(data: &Path) -> PathBuf {
    data.join("pki")
}

/// Creates the data folder, and restricts keys that an older version or a copy left readable for other users.
pub(crate) fn prepare_folder(data: &Path) -> Result<(), Error> {
    let unwritable = |reason| Error::Unwritable { path: data.to_owned(), reason };
    files::create_private_folder(data).map_err(unwritable)?;
    files::warn_if_open(data);
    for key in KEYS {
        files::restrict(&pki_folder(data).join(key));
    }
    Ok(())
}

/// `apiserver.crt` and `apiserver.key` of a folder. Both are created if one of them is missing.
fn serving_pair(folder: &Path, host: &str) -> Result<Identity, Error> {
    let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
    match (fs::read_to_string(&certificate), fs::read_to_string(&key)) {
        (Ok(certificate), Ok(key)) => return Ok(Identity { certificate, key }),
        (Err(reason), _) | (_, Err(reason)) if reason.kind() != io::ErrorKind::NotFound => {
            return Err(Error::Unreadable { path: certificate, reason });
        }
        _ => {}
    }
    let identity = pki::serving_pair(host, SystemTime::now())?;
    let write = || {
        files::create_private_folder(folder)?;
        files::replace(&key, identity.key.as_bytes(), Access::Private)?;
        files::replace(&certificate, identity.certificate.as_bytes(), Access::Public)
    };
    write().map_err(|reason| Error::Unwritable { path: certificate.clone(), reason })?;
    Ok(identity)
}
