//! The audit log: which requests are written down, and how the lines come to a file without keeping anybody waiting.
//!
//! What is logged of a request is decided by [`kinds::audit`]. Where there is no log, a request has no [`Trail`], and pays nothing.

mod file;
mod log;
mod response;
mod rotation;
mod source;
mod trail;

use std::sync::Arc;

use kinds::audit::Policy;

pub use file::Rotation;
pub use log::{Log, Mode};

pub(crate) use trail::{ID, Trail};

/// What is logged, and where.
pub struct Audit {
    pub(crate) policy: Policy,
    pub(crate) log: Arc<Log>,
}

impl Audit {
    /// What this policy says goes into this log.
    pub fn new(policy: Policy, log: Arc<Log>) -> Self {
        Self { policy, log }
    }
}
