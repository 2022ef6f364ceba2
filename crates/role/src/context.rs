//! The surroundings of a running role.

use std::sync::{Arc, Mutex, PoisonError};

use controller::Metrics;
use kube::Client;
use process::Shutdown;

/// The surroundings of a running role: the same in the process of a server and alone.
#[derive(Clone)]
pub struct RoleContext {
    /// A client of the API. In the process of a server it acts as the role's service account, without a socket.
    pub client: Client,
    /// The stop request. The start function returns soon after it.
    pub shutdown: Shutdown,
    /// The readiness of the role, which is the check `role/NAME` of `/readyz`.
    pub readiness: Readiness,
    /// The work queue metrics of the process.
    pub queue_metrics: Metrics,
    /// The name of this process among those that run the same role, for leader election.
    pub instance: String,
}

/// The readiness of a role. Clones share their state.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Mutex<Result<(), String>>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Err("the role has not started".to_owned()))))
    }
}

impl Readiness {
    /// The role works.
    pub fn ready(&self) {
        self.set(Ok(()));
    }

    /// The role does not work, for this reason. Clients with access to `/readyz` can read it, so it contains no secret.
    pub fn not_ready(&self, reason: impl Into<String>) {
        self.set(Err(reason.into()));
    }

    /// The state: the reason why the role does not work.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: Result<(), String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
