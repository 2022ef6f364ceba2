//! The types of CRDs.

mod codec;
mod compressed;
mod conversion;
mod crd;
mod finalizers;
pub mod scale;
mod strategy;
mod version;
mod version_priority;

pub(crate) use conversion::Conversion;
pub use crd::Crd;
pub(crate) use crd::{ParsedCrd, state};
pub use version::{CrdVersion, ScalePaths, Schema, Version, Versions};
pub use version_priority::version_order;
