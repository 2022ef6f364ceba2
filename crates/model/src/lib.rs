//! The vocabulary of a Kubernetes API: keys, revisions, names, JSON, objects, conditions, selectors, errors.
//!
//! Everything here is a plain function or a plain value: no I/O, no async, no clock that was not passed in. The rules of
//! Kubernetes' kinds and of CRDs are in the crate `kinds`.

pub mod address;
pub mod attributes;
pub mod condition;
pub mod encoded;
pub mod error;
pub mod json;
pub mod key;
pub mod names;
pub mod object;
pub mod revision;
pub mod selector;

pub use attributes::Attributes;
pub use encoded::Encoded;
pub use key::{ObjectKey, Resource, Uid};
pub use object::Object;
pub use revision::Revision;
pub use selector::Selector;
