//! An engine in another process: the engine's calls as frames on one connection, answered by the process that
//! has the database.
//!
//! Several servers may share one database this way. Each call is one frame and its answer another; they may
//! overtake one another. A frame without a call rings the bell. A connection answers calls once its client
//! has checked the history of the database, and again after each advance of the clock: see
//! docs/adr/0040-lost-history-detection-on-etcd-connections.md.

mod client;
mod frame;
mod link;
mod message;
mod server;
#[cfg(test)]
mod tests;
mod wire;

pub use client::{Connector, Remote};
pub use server::{Shared, serve};

use tokio::io::{AsyncRead, AsyncWrite};

/// The protocol's name with its version: both sides have to agree on it first.
pub const PROTOCOL: &str = "orlop-store/3";

/// A connection over any transport.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}
