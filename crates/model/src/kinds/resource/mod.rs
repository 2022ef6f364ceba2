//! The group `resource.k8s.io`: devices, who has them and who wants them.
//!
//! Fields of features that are off in a server of Kubernetes 1.35 (taints, partitions, shared capacity, binding conditions,
//! names of extended resources) are not kept. Expressions are only checked for their length.

mod allocation;
mod checks;
mod claim;
mod device_class;
mod slice;

use super::KindRules;

const GROUP: &str = "resource.k8s.io";

pub(super) const RULES: &[KindRules] = &[device_class::RULES, claim::CLAIM, claim::TEMPLATE, slice::RULES];
