//! Kubernetes' protobuf, driven by the schema table: no message has code of its own.
//!
//! What is read comes out in the same form that [`crate::schema::check`] gives JSON, so that nothing behind it knows
//! how a body was encoded. What is written has the bytes of kube-apiserver, field by field.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod wire;

pub use decode::{DecodeError, Decoded, decode, decode_message};
pub use encode::{ENVELOPE_END, EncodeError, Encoder, encode, watch_event};
pub use wire::Malformed;

/// What every encoded object begins with.
pub const MAGIC: &[u8] = b"k8s\0";
