//! Assembles API servers: a validated [`Config`] in, a running [`Server`] out.
//!
//! A server is a store, an API server, the cluster controllers, certificates, listeners and their supervision. Any number of them run in
//! one process: there is no global state, and nothing here reads arguments, the environment or signals. `orlop up`, `orlop serve`, the
//! drop-in `kube-apiserver` and test environments are this assembly with different configurations.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, api::PostParams};
//! use server::{Config, Identity, Server};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In memory and without a socket: for tests. `Config::in_folder` is the configuration of `orlop up`.
//! let server = Server::start(Config::in_memory()).await?;
//!
//! // A client in the same process, with all rights.
//! let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
//! let map: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "greeting"}, "data": {"en": "hello"}}"#)?;
//! maps.create(&PostParams::default(), &map).await?;
//!
//! // A client that acts as another user: RBAC decides as it does over the network.
//! let jane = Identity::authenticated("jane", []);
//! let maps: Api<ConfigMap> = Api::namespaced(server.client_as(jane), "default");
//! assert!(matches!(maps.get("greeting").await, Err(kube::Error::Api(status)) if status.code == 403));
//!
//! server.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Products run in the process of a server as [`Config::roles`]: each gets a client that acts as its service account, routes on the server's
//! port, and a check `role/NAME` in `/readyz`. They start after the first answer, and are restarted when they fail.
//!
//! [`Server::failed`] resolves when a task of the server ends early; the caller decides what that means. [`Server::kubeconfig`] is for
//! clients over the network: it needs [`Config::listen`].

mod audit;
mod auth;
mod certificates;
mod client_cas;
mod client_certificates;
mod config;
mod controllers;
mod error;
mod kubeconfig;
pub mod loopback;
mod reload_metrics;
mod renewal;
mod roles;
mod server;
mod start;
mod storage;

pub use apiserver::auth::{Connection, Identity, StaticToken};
pub use apiserver::{ApiService, Body};
pub use audit::AuditConfig;
pub use auth::{
    Anonymous, AuthConfig, FrontProxies, ServiceAccountConfig, SigningKeySource, follow_keys,
    follow_signing_key, unusable,
};
pub use client_cas::{CaBundle, ClientCas, watch_bundle};
pub use config::{Certificates, Config, Controllers, GroupVersion, Listen, PostgresUrl, Storage};
pub use error::Error;
pub use process::supervisor::Failure;
pub use server::Server;
