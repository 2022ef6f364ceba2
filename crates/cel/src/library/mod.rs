//! The functions of CEL and of Kubernetes' libraries.

mod address;
pub mod authorizer;
mod bindings;
mod cidr;
mod cost;
mod format;
mod ip;
mod json_patch;
pub mod kubernetes;
mod lists;
mod lists_extension;
mod quantity;
mod regex;
mod semver;
mod sets;
mod standard;
mod strings;
mod url;

use std::any::Any;

pub(crate) use self::standard::{insert_entry, standard};
use crate::Opaque;

/// Downcasts an opaque value to a library's type.
fn downcast<T: Opaque>(value: &dyn Opaque) -> Option<&T> {
    let any: &dyn Any = value;
    any.downcast_ref()
}
