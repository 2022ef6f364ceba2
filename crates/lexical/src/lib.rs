//! Name checks with Kubernetes' messages, and Go's string quoting: clients compare whole messages.
//!
//! `cel` and `model` depend on this crate; other crates use the re-exports of `model`.

pub mod names;
mod quoting;

pub use quoting::{is_printable, quote};
