//! The group `resource.k8s.io` (dynamic resource allocation).
//!
//! Fields of features that are off by default in Kubernetes 1.35 (taints, partitions, shared capacity, binding
//! conditions, names of extended resources) are dropped.

mod access;
mod allocation;
mod checks;
mod claim;
mod device_class;
mod expressions;
mod slice;

use super::KindRules;

pub use access::{admin_access, bad_admin_access};

const GROUP: &str = "resource.k8s.io";

pub(super) const RULES: &[KindRules] = &[device_class::RULES, claim::CLAIM, claim::TEMPLATE, slice::RULES];
