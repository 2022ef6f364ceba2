//! The audit log of a server.

use std::{path::PathBuf, sync::Arc};

use apiserver::audit::{Audit, Log, Mode, Rotation};
use kinds::audit::Policy;

use crate::Error;

/// An audit log: the policy that selects events, and the file that they are written to.
#[derive(Clone, Debug)]
pub struct AuditConfig {
    /// The policy.
    pub policy: Policy,
    /// The file; `-` for the standard output.
    pub path: PathBuf,
    /// Log rotation.
    pub rotation: Rotation,
    /// Whether responses wait for their events.
    pub mode: Mode,
}

impl AuditConfig {
    /// Opens the log. It is to be flushed when the server stops.
    pub(crate) fn open(&self) -> Result<(Audit, Arc<Log>), Error> {
        self.policy.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let log = Log::open(&self.path, self.rotation)
            .map_err(|reason| Error::Audit { path: self.path.clone(), reason })?;
        let log = Arc::new(log.with_mode(self.mode));
        Ok((Audit::new(self.policy.clone(), Arc::clone(&log)), log))
    }
}
