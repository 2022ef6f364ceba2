//! Loopback clients: `kube::Client`s that call the server in the same process, without a socket, and act as any user.

use apiserver::{ApiServer, ApiService, auth::Identity};
use http::HeaderValue;

/// The user agent of the cluster controllers. The server derives the default field manager from it.
pub(crate) const CONTROLLER_MANAGER: HeaderValue = HeaderValue::from_static("kube-controller-manager");

/// The user agent of all other loopback clients.
pub(crate) const LOOPBACK: HeaderValue = HeaderValue::from_static("orlop");

/// The user of the administrator's kubeconfig: `admin`, a member of `system:masters`.
#[must_use]
pub fn administrator() -> Identity {
    Identity::authenticated("admin", ["system:masters".to_owned()])
}

/// The identity of the server itself: `system:apiserver`, a member of `system:masters`.
#[must_use]
pub fn apiserver() -> Identity {
    Identity::authenticated("system:apiserver", ["system:masters".to_owned()])
}

/// A client that acts as this user. It does not keep the server alive.
pub(crate) fn client(api: &ApiServer, identity: Identity, user_agent: HeaderValue) -> kube::Client {
    kube::Client::new(ApiService::weak(api, identity).with_user_agent(user_agent), "default")
}
