//! The registry of resource types and the one HTTP pipeline that serves it.
//!
//! [`ApiServer`] is a value that answers requests; [`serve`] gives it a socket; [`ApiService`] gives it to a client in the
//! same process, without one. A user of this library registers resource types of its own, with the verbs, the strategy and the
//! table that they need, and may bring an authenticator and an authorizer. A product serves paths of its own by [`Builder::mount`].

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
pub use service::ApiService;
