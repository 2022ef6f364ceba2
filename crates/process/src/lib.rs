//! Process-level building blocks for all roles: arguments, logging, tracing, certificates, TLS, signals,
//! supervised tasks.
//!
//! The crate knows nothing about the roles that use it.

pub mod args;
pub mod descriptors;
pub mod files;
pub mod go_time;
pub mod http_server;
mod keys;
pub mod listen;
pub mod logging;
pub mod pki;
pub mod reload;
pub mod shutdown;
pub mod signing;
pub mod sockets;
pub mod supervisor;
pub mod telemetry;
pub mod tls;

pub use shutdown::Shutdown;
pub use supervisor::Supervisor;
