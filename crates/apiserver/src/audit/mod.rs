//! The audit log: policy, event queue, file with rotation.
//!
//! [`kinds::audit`] decides about the level of a request. Without an audit log a request has no [`Trail`] and costs nothing.

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

/// The audit policy and its log.
pub struct Audit {
    pub(crate) policy: Policy,
    pub(crate) log: Arc<Log>,
}

impl Audit {
    /// Audits by this policy into this log.
    pub fn new(policy: Policy, log: Arc<Log>) -> Self {
        Self { policy, log }
    }
}
