//! Failures of a session, and the errors that the store's callers get for them.

use std::error::Error as _;
use std::io;

use rustls::CertificateError;
use tokio_postgres::error::SqlState;

use super::address::Address;
use crate::types::Error;

/// Failure of a session.
#[derive(Debug)]
pub enum Failure {
    /// Reported by the driver or the server.
    Postgres(tokio_postgres::Error),
    /// There was no answer in time.
    Late,
    /// The server is a standby.
    Standby,
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match &failure {
            Failure::Postgres(error)
                if matches!(error.code(), Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED)) =>
            {
                Self::Corrupt { reason: failure.words() }
            }
            _ => Self::Unavailable { reason: failure.words() },
        }
    }
}

impl Failure {
    /// Whether the session is lost, rather than only the statement refused: it may succeed on another
    /// session.
    pub fn is_loss(&self) -> bool {
        let Self::Postgres(error) = self else { return true };
        match error.code() {
            None => true,
            Some(code) => {
                let code = code.code();
                code.starts_with("08") || code.starts_with("57P")
            }
        }
    }

    /// The error of a trip that writes and commits: if the session was lost, the commit may have happened all
    /// the same.
    pub fn in_commit(self) -> Error {
        if self.is_loss() { Error::OutcomeUnknown { reason: self.words() } } else { self.into() }
    }

    /// The failure in words, free of values: the server's message without its details, which may repeat them.
    fn words(&self) -> String {
        let error = match self {
            Self::Postgres(error) => error,
            Self::Late => return "PostgreSQL did not answer in time".to_owned(),
            Self::Standby => return "PostgreSQL is a standby, which cannot be written to".to_owned(),
        };
        match error.as_db_error() {
            Some(said) => format!("PostgreSQL says: {} ({})", said.message(), said.code().code()),
            None => match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            },
        }
    }

    /// One sentence for the operator who starts the server: the problem and its remedy.
    pub fn on_open(&self, address: &Address) -> Error {
        let place = address.place();
        let words = self.words();
        let reason = match self {
            Self::Late => format!(
                "PostgreSQL at {place} did not answer within {} s: check the address and the network",
                address.patience().as_secs()
            ),
            Self::Standby => format!("PostgreSQL at {place} is a standby: name the primary, or both"),
            Self::Postgres(error) => match error.code() {
                Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                    format!(
                        "PostgreSQL at {place} does not let us in ({words}): check user and password in the address"
                    )
                }
                Some(&SqlState::INVALID_CATALOG_NAME) => {
                    format!(
                        "the database of {place} does not exist: create it (createdb) or correct the address"
                    )
                }
                Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    format!(
                        "the user may not set up the database of {place} ({words}): make the user its owner"
                    )
                }
                Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => format!(
                    "the database of {place} is read-only and has to be set up first: make it writable, or name the primary"
                ),
                Some(_) => {
                    format!("the database of {place} cannot be opened ({words}): see PostgreSQL's log")
                }
                None if let Some(fault) = certificate_fault(error) => of_certificate(fault, place, &words),
                None if words.contains("server does not support TLS") => format!(
                    "PostgreSQL at {place} does not encrypt, and the address asks for it (sslmode): turn ssl on there"
                ),
                None if words.contains("password missing") => format!(
                    "PostgreSQL at {place} asks for a password: write it into the address, as in \
                     postgres://user:password@host/database"
                ),
                None => format!(
                    "PostgreSQL at {place} cannot be reached ({words}): check that it runs and the address"
                ),
            },
        };
        Error::Open { reason }
    }
}

/// The reason for which the server's certificate was refused, if it was.
fn certificate_fault(error: &tokio_postgres::Error) -> Option<&CertificateError> {
    let error = error.source()?.downcast_ref::<io::Error>()?;
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(fault) => Some(fault),
        _ => None,
    }
}

fn of_certificate(fault: &CertificateError, place: &str, words: &str) -> String {
    match fault {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the certificate of PostgreSQL at {place} is for another host ({words}): write the host that it is for"
        ),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "the certificate of PostgreSQL at {place} is not signed by an authority of sslrootcert ({words}): name the \
             file of the one that signed it"
        ),
        _ => format!("the certificate of PostgreSQL at {place} is not valid ({words}): renew it"),
    }
}

/// The database violates an invariant.
pub fn corrupt(reason: impl Into<String>) -> Error {
    Error::Corrupt { reason: reason.into() }
}

/// The engine was closed.
pub fn closed() -> Error {
    Error::Unavailable { reason: "the store is closed".to_owned() }
}
