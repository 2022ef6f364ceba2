//! What makes a well-behaved process, whatever its role: it stops when asked, and owns every task it starts.

pub mod shutdown;
pub mod supervisor;

pub use shutdown::Shutdown;
pub use supervisor::Supervisor;
