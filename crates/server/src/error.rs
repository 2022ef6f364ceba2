//! The reasons why a server does not start.

use std::{io, path::PathBuf};

use process::{listen, pki, reload, tls};
use thiserror::Error;
use tokio::task::JoinError;

/// A server that does not start.
#[derive(Debug, Error)]
pub enum Error {
    /// The listen address cannot be bound.
    #[error(transparent)]
    Listen(#[from] listen::Error),
    /// A file or folder cannot be written.
    #[error("cannot write {path}: {reason}", path = path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error, which the message includes.
        reason: io::Error,
    },
    /// A certificate file cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        reason: io::Error,
    },
    /// The certificates cannot be created or used.
    #[error(transparent)]
    Certificates(#[from] pki::Error),
    /// The TLS library rejects a certificate.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// A CA, token or key file cannot be used.
    #[error(transparent)]
    File(#[from] reload::Error),
    /// The key that signs tokens of service accounts cannot be used.
    #[error("{path} cannot be used: {reason}", path = path.display())]
    SigningKey {
        /// The key file.
        path: PathBuf,
        /// The reason, which the message includes.
        reason: io::Error,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The store in another process cannot be reached.
    #[error("no store at {address}")]
    StoreUnreachable {
        /// The address of the store.
        address: String,
        /// The last error.
        #[source]
        reason: store::Error,
    },
    /// The audit log cannot be opened.
    #[error("cannot write the audit log {path}", path = path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        reason: io::Error,
    },
    /// The API server cannot create its bootstrap objects.
    #[error("cannot create the bootstrap objects: {0}")]
    Bootstrap(model::error::Error),
    /// A step of the start panicked.
    #[error("a step of the start failed: {0}")]
    Step(JoinError),
    /// The operating system does not tell the bound address.
    #[error("cannot read the bound address")]
    Address(#[source] io::Error),
}

impl Error {
    /// The error of a blocking step that panicked.
    pub(crate) fn blocking(error: JoinError) -> Self {
        Self::Step(error)
    }
}
