//! What makes a well-behaved process, whatever its role.
//!
//! It takes its arguments once, says what it does, shows who it is, owns every task it starts, and stops when asked.
//! Nothing here knows what the process is for.

pub mod args;
pub mod descriptors;
pub mod files;
pub mod go_time;
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
