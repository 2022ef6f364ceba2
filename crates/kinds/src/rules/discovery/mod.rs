//! The group `discovery.k8s.io`.

mod endpoint_slice;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[endpoint_slice::RULES];
