//! The group `coordination.k8s.io`.

mod lease;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[lease::RULES];
