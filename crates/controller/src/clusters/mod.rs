//! Clients of several clusters: in process, in a pod, by a kubeconfig file, and by the kubeconfig in a Secret.
//!
//! ```no_run
//! # async fn start(client: kube::Client) -> Result<(), controller::clusters::ClusterError> {
//! use controller::clusters::{ClusterClients, SecretReference, in_cluster, kubeconfig_file};
//!
//! let own = in_cluster()?;
//! let named = kubeconfig_file(None, Some("staging")).await?;
//! let clusters = ClusterClients::default();
//! let remote = clusters.load(&client, &SecretReference::new("fleet", "cluster-a")).await?;
//! # Ok(()) }
//! ```
//!
//! A client of a server in the same process is `kube::Client::new(service, namespace)` with any tower service.
//!
//! The kubeconfig of a Secret is written by users, and read by a program with rights of its own. So it has inline data only: one that names a
//! file, a command (`exec`) or an `auth-provider` is refused. No error and no `Debug` shows a part of it.

mod kubeconfig;
mod secrets;

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;

use crate::ObjectKey;

pub use self::kubeconfig::NotInline;
pub use self::secrets::{ClusterClients, SecretReference};

/// A cluster without a client.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The program does not run in a pod, or has no service account.
    #[error("cannot load the in-cluster configuration: {0}")]
    NotInCluster(String),
    /// A kubeconfig file cannot be used.
    #[error("cannot load the kubeconfig: {0}")]
    File(String),
    /// There is no such Secret, or the informer does not select it.
    #[error("there is no Secret {0}")]
    NoSecret(ObjectKey),
    /// The kubeconfig in a Secret cannot be used.
    #[error("the kubeconfig in Secret {secret} cannot be used: {reason}")]
    Secret {
        /// The Secret.
        secret: ObjectKey,
        /// The reason.
        #[source]
        reason: NotInline,
    },
    /// The Secret cannot be read.
    #[error("cannot read Secret {secret}: {reason}")]
    Request {
        /// The Secret.
        secret: ObjectKey,
        /// The server's error.
        #[source]
        reason: crate::Error,
    },
}

/// A client of the cluster whose pod this program runs in, as the pod's service account.
///
/// # Errors
/// [`ClusterError::NotInCluster`].
pub fn in_cluster() -> Result<Client, ClusterError> {
    let config = Config::incluster().map_err(|error| ClusterError::NotInCluster(error.to_string()))?;
    Client::try_from(config).map_err(|error| ClusterError::NotInCluster(error.to_string()))
}

/// A client by a kubeconfig file; without a path by the files of `KUBECONFIG`, or `~/.kube/config`. Without a context, the current one.
///
/// # Errors
/// [`ClusterError::File`].
pub async fn kubeconfig_file(path: Option<&Path>, context: Option<&str>) -> Result<Client, ClusterError> {
    let bad = |error: &dyn std::fmt::Display| ClusterError::File(error.to_string());
    let kubeconfig = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = kubeconfig.map_err(|error| match error {
        // Its text has a part of the file.
        kube::config::KubeconfigError::Parse(_) => bad(&"it is no YAML of a kubeconfig"),
        error => bad(&error),
    })?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| bad(&error))?;
    Client::try_from(config).map_err(|error| bad(&error))
}
