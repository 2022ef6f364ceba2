//! The certificates that a server makes for itself: an authority, a serving certificate, an administrator's.
//!
//! They are made on the first start, kept in a folder, used again on the next start, and made anew when they come
//! near their end, belong to another authority, or do not cover a name that the server is now reached by.

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
mod signer;

pub use signer::{KeyUsage, Signer};

use certificate::{Authority, Inspected, Subject};

/// How long an authority lives. Every kubeconfig that trusts it dies with it.
const AUTHORITY_LIFETIME: Duration = days(3650);

/// How long a certificate of the authority lives; also how early the authority itself is replaced.
const LIFETIME: Duration = days(365);

/// A certificate with less than this left is replaced at the next look.
const RENEW_BEFORE: Duration = days(90);

/// How often a process that runs for months should look.
pub const LOOK_INTERVAL: Duration = days(1);

/// The file with the certificates of CAs that were replaced.
const PREVIOUS: &str = "ca-previous.crt";

const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

/// The names by which a Kubernetes API server is reached inside and outside of its cluster, whatever its address.
const FIXED_NAMES: [&str; 8] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    // The first address of the usual range of service addresses: pods find the server there.
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

/// All certificates of one server.
#[derive(Clone, Debug)]
pub struct Pki {
    /// The CA's certificate, as PEM. Clients trust it, and the server trusts clients that it signed.
    pub ca: String,
    /// The certificates of CAs before it that have not expired, as PEM: what they signed is still trusted.
    pub previous: String,
    /// What the server shows to clients.
    pub server: Identity,
    /// What the administrator shows to the server: user `admin` of group `system:masters`.
    pub admin: Identity,
    /// What signs certificates for others.
    pub signer: Signer,
}

/// Why a server has no certificates.
#[derive(Debug, Error)]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {path}: {reason}; give another folder with --data, or make this one writable", path = path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        reason: io::Error,
    },
    /// The authority's files are there but cannot be used.
    #[error(
        "{path} cannot be used: {reason}; restore it from a copy, or move the folder away to begin with a new authority",
        path = path.display()
    )]
    Authority {
        /// The file in question.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A key or certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Generate(#[from] rcgen::Error),
}

impl Pki {
    /// Reads the certificates from `folder` and makes those that are missing or due. `host` is the name or address
    /// that the server listens on.
    ///
    /// Processes that share the folder take turns, so that they end up with the same certificates.
    ///
    /// # Errors
    /// When the folder is not writable or the authority in it is damaged.
    pub fn ensure(folder: &Path, host: &str, now: SystemTime) -> Result<Self, Error> {
        files::create_private_folder(folder).map_err(file_error("create", folder))?;
        let lock = File::open(folder).map_err(file_error("open", folder))?;
        lock.lock().map_err(file_error("lock", folder))?;

        let folder = Folder { path: folder, now };
        let authority = folder.authority()?;
        let previous = folder.previous()?;
        let server = folder.identity("server", &authority, &Subject::server(names(host)))?;
        let admin = folder.identity("admin", &authority, &Subject::admin())?;
        let ca = authority.certificate().to_owned();
        Ok(Self { ca, previous, server, admin, signer: Signer(Arc::new(authority)) })
    }

    /// All CAs whose certificates are trusted, as PEM: while an old CA and its successor are both valid, both of them.
    #[must_use]
    pub fn trusted(&self) -> String {
        format!("{}{}", self.ca, self.previous)
    }
}

/// When a certificate ends, in seconds since the epoch; `None` if the PEM holds none.
pub fn end_of(pem: &str) -> Option<i64> {
    Inspected::from_pem(pem).ok().map(|certificate| certificate.ends())
}

/// A serving certificate of an authority that nobody keeps, with that authority behind it: for clients that are told to trust
/// exactly this file, or nobody.
///
/// # Errors
/// When a key or certificate cannot be made.
pub fn serving_pair(host: &str, now: SystemTime) -> Result<Identity, Error> {
    let authority = Authority::new(now, LIFETIME)?;
    let mut identity = authority.issue(&Subject::server(names(host)), now, LIFETIME)?;
    identity.certificate.push_str(authority.certificate());
    Ok(identity)
}

/// The names on the serving certificate of a server that listens on `host`.
fn names(host: &str) -> Vec<String> {
    let mut names: Vec<_> = FIXED_NAMES.iter().map(|&name| name.to_owned()).collect();
    let host = host.trim_matches(['[', ']']);
    // 0.0.0.0 and :: are no addresses that anybody connects to.
    let means_all = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    if !means_all && !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    names
}

/// The folder at a moment: what "due" means depends on both.
struct Folder<'a> {
    path: &'a Path,
    now: SystemTime,
}

impl Folder<'_> {
    fn authority(&self) -> Result<Authority, Error> {
        let (certificate_path, key_path) = (self.path.join("ca.crt"), self.path.join("ca.key"));
        if let Some(certificate) = read(&certificate_path)? {
            let damaged = |path: &Path, reason: String| Error::Authority { path: path.to_owned(), reason };
            let key = read(&key_path)?.ok_or_else(|| damaged(&key_path, "it is missing".to_owned()))?;
            let inspected =
                Inspected::from_pem(&certificate).map_err(|reason| damaged(&certificate_path, reason))?;
            let authority = Authority::load(certificate, &key, &inspected)
                .map_err(|reason| damaged(&key_path, reason))?;
            if inspected.is_valid_until(self.now, self.now + LIFETIME) {
                return Ok(authority);
            }
            tracing::warn!(path = %certificate_path.display(), "the CA is near its end and is replaced");
            self.retire(authority.certificate())?;
        }
        let authority = Authority::new(self.now, AUTHORITY_LIFETIME)?;
        // The certificate comes last: its presence says that the key is there.
        for (path, text, access) in [
            (&key_path, authority.key().as_str(), Access::Private),
            (&certificate_path, authority.certificate(), Access::Public),
        ] {
            files::write_durably(path, text.as_bytes(), access).map_err(file_error("write", path))?;
        }
        Ok(authority)
    }

    /// Keeps the certificate of a CA that is about to be replaced: what it signed is trusted to its end.
    fn retire(&self, certificate: &str) -> Result<(), Error> {
        let (path, before) = (self.path.join(PREVIOUS), self.previous()?);
        let all = tls::united(&[certificate, &before], self.now).unwrap_or_else(|_| certificate.to_owned());
        files::write_durably(&path, all.as_bytes(), Access::Public).map_err(file_error("write", &path))
    }

    /// The certificates of former CAs that have not expired. A damaged file is as good as none: it only grants.
    fn previous(&self) -> Result<String, Error> {
        let path = self.path.join(PREVIOUS);
        let Some(text) = read(&path)? else { return Ok(String::new()) };
        Ok(tls::united(&[&text], self.now).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the certificates of former CAs cannot be read and are ignored");
            String::new()
        }))
    }

    fn identity(&self, name: &str, authority: &Authority, subject: &Subject) -> Result<Identity, Error> {
        let certificate_path = self.path.join(format!("{name}.crt"));
        let key_path = self.path.join(format!("{name}.key"));
        if let (Some(certificate), Some(key)) = (read(&certificate_path)?, read(&key_path)?) {
            let identity = Identity { certificate, key };
            if self.is_good(&identity, authority, subject) {
                return Ok(identity);
            }
        }
        let identity = authority.issue(subject, self.now, LIFETIME)?;
        // The authority can make another at any time, so nobody waits for the disk.
        for (path, text, access) in [
            (&key_path, &identity.key, Access::Private),
            (&certificate_path, &identity.certificate, Access::Public),
        ] {
            files::replace(path, text.as_bytes(), access).map_err(file_error("write", path))?;
        }
        Ok(identity)
    }

    fn is_good(&self, identity: &Identity, authority: &Authority, subject: &Subject) -> bool {
        Inspected::from_pem(&identity.certificate).is_ok_and(|certificate| {
            certificate.is_valid_until(self.now, self.now + RENEW_BEFORE)
                && certificate.has_key(&identity.key)
                && certificate.is_issued_by(authority)
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
