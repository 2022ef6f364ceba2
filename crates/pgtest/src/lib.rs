//! For tests: a private PostgreSQL server on a free port of 127.0.0.1, in a temporary folder of its own.
//!
//! ```no_run
//! let mut server = pgtest::PgServer::start()?;
//! let url = server.create_database()?; // one per test: tests that share a server do not see each other
//! server.restart(pgtest::Stop::Immediate)?; // a crash, as far as the data is concerned
//! # Ok::<(), pgtest::Error>(())
//! ```
//!
//! The server keeps PostgreSQL's own durability settings (fsync and synchronous_commit are on), so that crash tests
//! test something. It sorts text by a human language, so that a query which forgets to ask for byte order fails
//! here and not at a user's. It is stopped and its folder removed when the value is dropped, and also when the test
//! process is killed, or holds the server in a `static`.

mod account;
mod binaries;
mod caretaker;
mod server;

pub use server::{PgServer, Stop};

/// Why there is no server: one sentence for whoever runs the tests.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn because(what: &str, reason: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {reason}"))
    }
}
