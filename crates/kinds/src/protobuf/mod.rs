//! Kubernetes' protobuf, driven by the schema table: there is no code per message.
//!
//! The decoder returns the same values as [`crate::schema::check`] does for JSON, so that later stages do not depend on
//! the encoding of a body. The encoder produces the same bytes as kube-apiserver.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod type_meta;
mod wire;

pub use decode::{DecodeError, Decoded, decode, decode_message};
pub use encode::{ENVELOPE_END, EncodeError, Encoder, encode, watch_event};
pub use type_meta::TypeMeta;
pub use wire::Malformed;

/// The prefix of every encoded object.
pub const MAGIC: &[u8] = b"k8s\0";
