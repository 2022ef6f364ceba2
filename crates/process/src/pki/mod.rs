//! The server's own certificates: a CA, a serving certificate and an administrator's client certificate.
//!
//! The first start creates them in a folder, later starts reuse them. A certificate is replaced when it is
//! close to its expiry, was signed by another CA, or lacks a name of the server.

use std::{
    fs::{self, File},
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use thiserror::Error;

use crate::{
    files::{self, Access},
    tls,
};

mod certificate;
mod component;
mod signer;

pub use component::{Unusable, component_ca, created_at, is_serving_for, issue, split_bundle};
pub use signer::{KeyUsage, Signer};

use certificate::{Ca, ParsedCertificate, Subject};

/// The lifetime of the CA. Every kubeconfig that trusts it becomes invalid with it.
const CA_LIFETIME: Duration = days(3650);

/// The lifetime of a certificate that the CA signs; also the remaining lifetime at which the CA is replaced.
const LIFETIME: Duration = days(365);

/// A certificate with less remaining lifetime than this is replaced by the next check.
const RENEW_BEFORE: Duration = days(90);

/// The interval at which a long-running process should check its certificates.
pub const CHECK_INTERVAL: Duration = days(1);

/// The file with the certificates of replaced CAs.
const PREVIOUS: &str = "ca-previous.crt";

const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

/// The names of a Kubernetes API server inside and outside of its cluster, independent of its address.
const FIXED_NAMES: [&str; 8] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    // The first address of the default service range, which in-cluster clients use.
    "10.96.0.1",
];

/// A certificate and its private key, both as PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key (PKCS #8). Never logged: the type's `Debug` leaves it out.
    pub key: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// All certificates of a server.
#[derive(Clone, Debug)]
pub struct Pki {
    /// The CA's certificate, as PEM. Clients trust it, and the server trusts clients that it signed.
    pub ca: String,
    /// The unexpired certificates of replaced CAs, as PEM: certificates that they signed are still trusted.
    pub previous: String,
    /// The serving certificate.
    pub server: Identity,
    /// The administrator's client certificate: user `admin` in group `system:masters`.
    pub admin: Identity,
    /// Signs client certificates for certificate signing requests.
    pub signer: Signer,
}

/// The reason why a server has no certificates.
#[derive(Debug, Error)]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {path}: {reason}; give another folder with --data, or make this one writable", path = path.display())]
    File {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        reason: io::Error,
    },
    /// The files of the CA exist but cannot be used.
    #[error(
        "{path} cannot be used: {reason}; restore it from a backup, or move the folder away to start with a new CA",
        path = path.display()
    )]
    Ca {
        /// The unusable file.
        path: PathBuf,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// A key or certificate cannot be generated.
    #[error("cannot generate a certificate: {0}")]
    Generate(#[from] rcgen::Error),
}

impl Pki {
    /// Reads the certificates in `folder` and creates those that are missing or due for renewal. `host` is
    /// the name or address that the server listens on.
    ///
    /// Processes that share the folder take turns, so that all of them get the same certificates.
    ///
    /// # Errors
    /// When the folder is not writable or the CA in it is damaged.
    pub fn ensure(folder: &Path, host: &str, now: SystemTime) -> Result<Self, Error> {
        files::create_private_folder(folder).map_err(file_error("create", folder))?;
        let lock = File::open(folder).map_err(file_error("open", folder))?;
        lock.lock().map_err(file_error("lock", folder))?;

        let folder = Folder { path: folder, now };
        let signing_ca = folder.ca()?;
        let previous = folder.previous()?;
        let server = folder.identity("server", &signing_ca, &Subject::server(names(host)))?;
        let admin = folder.identity("admin", &signing_ca, &Subject::admin())?;
        let ca = signing_ca.certificate().to_owned();
        Ok(Self { ca, previous, server, admin, signer: Signer(Arc::new(signing_ca)) })
    }

    /// Creates all certificates in memory, for a server that keeps no files.
    ///
    /// # Errors
    /// When a key or certificate cannot be generated.
    pub fn ephemeral(host: &str, now: SystemTime) -> Result<Self, Error> {
        let signing_ca = Ca::new(now, CA_LIFETIME)?;
        let server = signing_ca.issue(&Subject::server(names(host)), now, LIFETIME)?;
        let admin = signing_ca.issue(&Subject::admin(), now, LIFETIME)?;
        let ca = signing_ca.certificate().to_owned();
        Ok(Self { ca, previous: String::new(), server, admin, signer: Signer(Arc::new(signing_ca)) })
    }

    /// All trusted CA certificates, as PEM: the present CA, and replaced CAs until they expire.
    #[must_use]
    pub fn trusted(&self) -> String {
        format!("{}{}", self.ca, self.previous)
    }
}

/// The expiry of a PEM certificate in seconds since the epoch; `None` if the text holds no certificate.
pub fn expires_at(pem: &str) -> Option<i64> {
    ParsedCertificate::from_pem(pem).ok().map(|certificate| certificate.ends())
}

/// A serving certificate followed by the certificate of its CA, whose key is discarded: for clients that
/// trust exactly this file.
///
/// # Errors
/// When a key or certificate cannot be generated.
pub fn serving_pair(host: &str, now: SystemTime) -> Result<Identity, Error> {
    let ca = Ca::new(now, LIFETIME)?;
    let mut identity = ca.issue(&Subject::server(names(host)), now, LIFETIME)?;
    identity.certificate.push_str(ca.certificate());
    Ok(identity)
}

/// The names on the serving certificate of a server that listens on `host`.
fn names(host: &str) -> Vec<String> {
    let mut names: Vec<_> = FIXED_NAMES.iter().map(|&name| name.to_owned()).collect();
    let host = host.trim_matches(['[', ']']);
    // Clients cannot connect to the unspecified addresses 0.0.0.0 and ::.
    let means_all = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    if !means_all && !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    names
}

/// The certificate folder, and the time at which renewal is decided.
struct Folder<'a> {
    path: &'a Path,
    now: SystemTime,
}

impl Folder<'_> {
    fn ca(&self) -> Result<Ca, Error> {
        let (certificate_path, key_path) = (self.path.join("ca.crt"), self.path.join("ca.key"));
        if let Some(certificate) = read(&certificate_path)? {
            let damaged = |path: &Path, reason: String| Error::Ca { path: path.to_owned(), reason };
            let key = read(&key_path)?.ok_or_else(|| damaged(&key_path, "it is missing".to_owned()))?;
            let parsed = ParsedCertificate::from_pem(&certificate)
                .map_err(|reason| damaged(&certificate_path, reason))?;
            let ca = Ca::load(certificate, &key, &parsed).map_err(|reason| damaged(&key_path, reason))?;
            if parsed.is_valid_until(self.now, self.now + LIFETIME) {
                return Ok(ca);
            }
            tracing::warn!(path = %certificate_path.display(), "replacing the CA, which expires soon");
            self.retire(ca.certificate())?;
        }
        let ca = Ca::new(self.now, CA_LIFETIME)?;
        // The certificate is written last: its presence implies that the key exists.
        for (path, text, access) in [
            (&key_path, ca.key().as_str(), Access::Private),
            (&certificate_path, ca.certificate(), Access::Public),
        ] {
            files::write_durably(path, text.as_bytes(), access).map_err(file_error("write", path))?;
        }
        Ok(ca)
    }

    /// Saves the certificate of a CA that is being replaced: certificates that it signed stay trusted until
    /// they expire.
    fn retire(&self, certificate: &str) -> Result<(), Error> {
        let (path, before) = (self.path.join(PREVIOUS), self.previous()?);
        let all =
            tls::merge_bundles(&[certificate, &before], self.now).unwrap_or_else(|_| certificate.to_owned());
        files::write_durably(&path, all.as_bytes(), Access::Public).map_err(file_error("write", &path))
    }

    /// The unexpired certificates of replaced CAs. A damaged file counts as empty, which only reduces trust.
    fn previous(&self) -> Result<String, Error> {
        let path = self.path.join(PREVIOUS);
        let Some(text) = read(&path)? else { return Ok(String::new()) };
        Ok(tls::merge_bundles(&[&text], self.now).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "cannot read the certificates of replaced CAs; ignoring them");
            String::new()
        }))
    }

    fn identity(&self, name: &str, ca: &Ca, subject: &Subject) -> Result<Identity, Error> {
        let certificate_path = self.path.join(format!("{name}.crt"));
        let key_path = self.path.join(format!("{name}.key"));
        if let (Some(certificate), Some(key)) = (read(&certificate_path)?, read(&key_path)?) {
            let identity = Identity { certificate, key };
            if self.is_good(&identity, ca, subject) {
                return Ok(identity);
            }
        }
        let identity = ca.issue(subject, self.now, LIFETIME)?;
        // Not synced to disk: the CA can issue another certificate at any time.
        for (path, text, access) in [
            (&key_path, &identity.key, Access::Private),
            (&certificate_path, &identity.certificate, Access::Public),
        ] {
            files::replace(path, text.as_bytes(), access).map_err(file_error("write", path))?;
        }
        Ok(identity)
    }

    fn is_good(&self, identity: &Identity, ca: &Ca, subject: &Subject) -> bool {
        ParsedCertificate::from_pem(&identity.certificate).is_ok_and(|certificate| {
            certificate.is_valid_until(self.now, self.now + RENEW_BEFORE)
                && certificate.has_key(&identity.key)
                && certificate.is_issued_by(ca)
                && certificate.covers(subject)
        })
    }
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("read", path)(error)),
    }
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |reason| Error::File { action, path, reason }
}

#[cfg(test)]
mod tests;
