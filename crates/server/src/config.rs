//! The validated configuration of a server. Nothing here reads arguments or the environment.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use apiserver::{Limits, admission::Switches};
use cluster_controllers::CONTROLLERS;
use controller::manager::{Selection, UnknownController};
use kinds::{Ranges, admission::configuration::AdmissionConfiguration};
use mount::Mount;
use process::{descriptors, listen::ListenAddress, pki::Identity, reload::Reloader};
use role::Role;
use store::{Durability, remote::Connector};

use crate::{
    audit::AuditConfig,
    auth::{AuthConfig, SigningKeySource},
    certificates::pki_folder,
    controllers,
};

/// The configuration of one server. [`Config::in_memory`] and [`Config::in_folder`] are starting points whose fields can be changed.
#[derive(Debug)]
pub struct Config {
    /// The database of the objects.
    pub storage: Storage,
    /// Compaction, retention and batching of the store.
    pub store: store::Options,
    /// The listening socket; `None` for a server that only in-process clients reach.
    pub listen: Option<Listen>,
    /// The origin of the certificates.
    pub certificates: Certificates,
    /// Authentication and authorization.
    pub auth: AuthConfig,
    /// The reloader of the CA, token and key files that the configuration names. The server runs it.
    pub files: Reloader,
    /// The admission plugins that are on.
    pub plugins: Switches,
    /// The configuration of the admission plugins.
    pub admission: AdmissionConfiguration,
    /// Group and version of built-in APIs that are off by default and are to be served.
    pub extra_apis: Vec<GroupVersion>,
    /// The address and port ranges of Services.
    pub services: Ranges,
    /// The limits of requests and connections.
    pub limits: Limits,
    /// The audit log.
    pub audit: Option<AuditConfig>,
    /// The cluster controllers; `None` for a server that runs none of them, as a bare kube-apiserver does.
    pub controllers: Option<Controllers>,
    /// Path prefixes that the server mounts, beside those of `roles`.
    pub mounts: Vec<Mount>,
    /// The products that run in the process of the server.
    pub roles: Vec<Role>,
    /// The lifetime of Events after their last write; zero keeps them forever.
    pub event_ttl: Duration,
    /// The name of this machine, for the identity Lease of the server.
    pub host: String,
    /// The time between the failure of `/readyz` and the stop, so that load balancers drain the server.
    pub shutdown_delay: Duration,
}

/// The group and version of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersion {
    /// The group, such as `admissionregistration.k8s.io`.
    pub group: &'static str,
    /// The version, such as `v1beta1`.
    pub version: &'static str,
}

/// The database of a server.
#[derive(Clone)]
pub enum Storage {
    /// In memory: the objects end with the server.
    Memory,
    /// A SQLite file that this process opens exclusively.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The events that an acknowledged write survives.
        durability: Durability,
    },
    /// A PostgreSQL database, which several servers may share.
    Postgres(PostgresUrl),
    /// A store in another process.
    Remote {
        /// Opens a connection.
        connector: Connector,
        /// The address of the store, for error messages.
        address: String,
        /// The time that the store may take to appear.
        timeout: Duration,
    },
}

impl Storage {
    /// Whether other servers may use the database at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_) | Self::Remote { .. })
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::Sqlite { path, durability } => {
                f.debug_struct("Sqlite").field("path", path).field("durability", durability).finish()
            }
            Self::Postgres(url) => f.debug_tuple("Postgres").field(url).finish(),
            Self::Remote { address, .. } => {
                f.debug_struct("Remote").field("address", address).finish_non_exhaustive()
            }
        }
    }
}

/// The address of a PostgreSQL database. `Debug` hides it, because it may contain a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// `postgres://USER@HOST/DATABASE`, with parameters of libpq.
    pub url: String,
    /// The file with the passwords that the address does not contain.
    pub passfile: Option<PathBuf>,
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresUrl(…)")
    }
}

/// A listening socket.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address to bind; port 0 selects a free port.
    pub address: ListenAddress,
    /// The address under which Pods find the server; by default the bound one, or an address of this machine if that is a loopback
    /// address.
    pub advertise: Option<IpAddr>,
}

/// The origin of a server's certificates.
#[derive(Clone, Debug)]
pub enum Certificates {
    /// A new CA in memory signs a serving certificate and the administrator's client certificate.
    Ephemeral,
    /// The same, in files: `FOLDER/pki` has the CA, the certificates and `sa.key`, `FOLDER/kubeconfig` is the administrator's. Missing
    /// files are created, and certificates are renewed before they expire.
    Folder(PathBuf),
    /// The given serving certificate; the server has no CA.
    Serving(Identity),
    /// `apiserver.crt` and `apiserver.key` of this folder, which are created if missing; the server has no CA.
    ServingFolder(PathBuf),
}

/// The cluster controllers that a server runs.
#[derive(Clone, Debug)]
pub struct Controllers {
    /// Their selection by name.
    pub selection: Selection,
    /// The period after which an unused, auto-generated service account token Secret is invalidated; `None` for a year.
    pub unused_tokens: Option<Duration>,
}

impl Controllers {
    /// Selects controllers by a list such as `*,-garbage-collector-controller`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn select(list: &[String]) -> Result<Self, UnknownController> {
        Ok(Self { selection: Selection::new(list, CONTROLLERS, controllers::BUILT_IN)?, unused_tokens: None })
    }

    /// All controllers.
    #[must_use]
    pub fn all() -> Self {
        Self::select(&["*".to_owned()]).expect("the list names no controller")
    }
}

impl Config {
    /// A server in memory, without a socket: for test environments. Its clients are those of [`Server::client`](crate::Server::client).
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            storage: Storage::Memory,
            store: store::Options::default(),
            listen: None,
            certificates: Certificates::Ephemeral,
            auth: AuthConfig::default(),
            files: Reloader::default(),
            plugins: Switches::kubernetes(),
            admission: AdmissionConfiguration::default(),
            extra_apis: Vec::new(),
            services: Ranges::default(),
            limits: Limits::default(),
            audit: None,
            controllers: Some(Controllers::all()),
            mounts: Vec::new(),
            roles: Vec::new(),
            event_ttl: Duration::from_secs(60 * 60),
            host: "localhost".to_owned(),
            shutdown_delay: Duration::ZERO,
        }
    }

    /// A server with its database, certificates, keys and kubeconfig in a folder, as `orlop up` runs it.
    #[must_use]
    pub fn in_folder(folder: &Path, listen: ListenAddress) -> Self {
        let database = Storage::Sqlite { path: folder.join("orlop.db"), durability: Durability::Full };
        let mut auth = AuthConfig::default();
        auth.service_accounts.signing_key = SigningKeySource::File(pki_folder(folder).join("sa.key"));
        Self {
            storage: database,
            auth,
            listen: Some(Listen { address: listen, advertise: None }),
            certificates: Certificates::Folder(folder.to_owned()),
            ..Self::in_memory()
        }
    }

    /// The limits, with as many connections as this process has file descriptors for. Raises the process's limit of open files.
    pub fn raise_descriptor_limit(&mut self) {
        self.limits.connections = descriptors::connections_within(descriptors::raise_limit());
    }
}
