//! The vocabulary of a Kubernetes API: keys, revisions, objects, selectors, patches, errors.
//!
//! Everything here is a plain function or a plain value: no I/O, no async, no clock that was not passed in.

pub mod admission;
pub mod apply;
pub mod attributes;
pub mod audit;
pub mod conversion;
pub mod encoded;
pub mod error;
pub mod json;
pub mod key;
pub mod kinds;
pub mod names;
pub mod patch;
pub mod pod_security;
pub mod policies;
pub mod protobuf;
pub mod rbac;
pub mod resources;
pub mod revision;
pub mod schema;
pub mod selector;
pub mod structural;
pub mod validation;

pub use attributes::Attributes;
pub use encoded::Encoded;
pub use key::{ObjectKey, Resource, Uid};
pub use revision::Revision;
pub use selector::Selector;
