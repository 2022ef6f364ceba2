//! Private PostgreSQL servers for tests, each on a free port of 127.0.0.1 and in its own temporary folder.
//!
//! ```no_run
//! let mut server = pgtest::PgServer::start()?;
//! let url = server.create_database()?; // one per test: tests that share a server do not see each other
//! server.restart(pgtest::Stop::Immediate)?; // a crash, as far as the data is concerned
//! # Ok::<(), pgtest::Error>(())
//! ```
//!
//! The server keeps PostgreSQL's default durability (fsync and synchronous_commit are on), so that crash
//! tests are valid. Its collation is a human language's, so that a query that forgets `COLLATE "C"` fails in
//! tests and not in production. The server is stopped and its folder removed when the value is dropped, and
//! also when the test process is killed or holds the server in a `static`.

mod account;
mod binaries;
mod caretaker;
mod server;

pub use server::{PgServer, Stop};

/// The reason why a server cannot be used, as one sentence for the person who runs the tests.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn because(what: &str, reason: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {reason}"))
    }
}
