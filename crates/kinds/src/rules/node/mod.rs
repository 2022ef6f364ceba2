//! The group `node.k8s.io`.

mod runtime_class;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[runtime_class::RULES];
