//! Types that come from definitions: read from the stored objects, made ready for requests.

mod conversion;
mod definition;
mod finalizers;
mod opening;
mod order;
mod packed;
pub mod scale;
mod strategy;
mod version;

pub(crate) use conversion::Conversion;
pub use definition::Definition;
pub(crate) use definition::{Read, state};
pub use order::version_order;
pub use version::{ScalePaths, Schema, Version, Versions, View};
