//! A Kubernetes API server: a registry of resource types, and the HTTP pipeline that serves it.
//!
//! [`ApiServer`] answers requests; [`serve`] gives it a socket; [`ApiService`] serves a client in the same process without
//! one. A library user registers resource types with their verbs, strategy and table, and may add an authenticator and an
//! authorizer. A product serves its own paths by [`Builder::mount`].

pub mod admission;
mod api;
pub mod audit;
pub mod auth;
mod body;
mod bootstrap;
mod built_in;
mod compress;
mod crds;
mod discovery;
mod endpoints;
mod flow_control;
mod gate;
mod identity_lease;
mod informer;
mod limits;
mod metrics;
mod mounted;
mod mounts;
mod openapi;
mod pacing;
mod pages;
mod pipeline;
mod policy_status;
mod readyz_check;
pub mod registry;
mod render;
pub mod request;
mod request_body;
pub mod reviews;
mod server;
mod service;
mod verbs;
mod warnings;
mod webhook;

pub use api::{ApiServer, Builder};
pub use body::{Aborted, Body};
pub use limits::Limits;
pub use policy_status::check_policies;
pub use registry::ResourceType;
pub use request::verb::{Verb, Verbs};
pub use server::{Peers, serve};
pub use service::{ApiService, Stopped};
