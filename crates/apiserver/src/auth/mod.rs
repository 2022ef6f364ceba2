//! Authentication, impersonation and authorization.

pub(crate) mod accounts;
pub mod authenticate;
pub(crate) mod authentication_configmap;
pub mod authorize;
pub(crate) mod impersonate;
mod modes;
mod proxy;
pub(crate) mod rbac;

use std::collections::BTreeMap;

pub use accounts::ServiceAccounts;
pub use authenticate::{Authentication, Authenticator, Connection, Credentials, Peer, StaticToken};
pub use authentication_configmap::{ClusterAuthenticationInfo, RequestHeaderInfo};
pub use authorize::{Authorizer, AuthorizerAttributes, Decision, Rules};
pub use modes::Mode;
pub(crate) use modes::{MASTERS, Modes};
pub use proxy::ProxyHeaders;

/// The identity of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user name.
    pub name: String,
    /// Distinguishes users of the same name; may be empty.
    pub uid: String,
    /// The groups, `system:authenticated` or `system:unauthenticated` among them.
    pub groups: Vec<String>,
    /// Extra attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// An authenticated user.
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == "system:authenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// The user `system:anonymous`.
    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { name: "system:anonymous".to_owned(), groups, ..Self::default() }
    }

    /// The identity of loopback requests.
    pub(crate) fn server() -> Self {
        Self::authenticated("system:apiserver", ["system:masters".to_owned()])
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
