//! The group `scheduling.k8s.io`.

mod priority_class;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[priority_class::RULES];
